package rows_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/rows"
)

type pet struct {
	Name string `json:"name"`
	Legs int    `json:"legs"`
}

func (p pet) Cells() []string { return []string{p.Name, strings.Repeat("|", p.Legs)} }

func (p pet) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, p.Name+"\nis a pet\n")
	return err
}

// Each form is printed from the same struct.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		json, verbatim, head bool
		want                 string
	}{
		"cells":    {want: "ant & <b>\t||||||\neel\t\nant & <b>\nis a pet\n"},
		"aligned":  {head: true, want: "NAME       LEGS\nant & <b>  ||||||\neel        \n"},
		"json":     {json: true, head: true, want: `{"name":"ant \u0026 \u003cb\u003e","legs":6}` + "\n"},
		"verbatim": {json: true, verbatim: true, want: `{"name":"ant & <b>","legs":6}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := rows.New(&out, c.json)
			if c.verbatim {
				p = rows.NewVerbatim(&out, c.json)
			}
			ant := pet{"ant & <b>", 6}
			errs := []error{}
			if c.head {
				errs = append(errs, p.Head("NAME", "LEGS"))
			}
			errs = append(errs, p.Row(ant))
			if !c.json {
				errs = append(errs, p.Row(pet{"eel", 0}))
			}
			if !c.json && !c.head {
				errs = append(errs, p.Report(ant))
			}
			if out.Len() > 0 {
				t.Errorf("%q was written before Flush", out.String())
			}
			if err := errors.Join(append(errs, p.Flush())...); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A result that was not written is an error in each form.
func TestErrorsOfTheWriter(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		if err := rows.Print(full{}, asJSON, pet{"ant", 6}); !errors.Is(err, errFull) {
			t.Errorf("Print, JSON %v: %v", asJSON, err)
		}
		p := rows.New(full{}, asJSON)
		err := errors.Join(p.Head("NAME", "LEGS"), p.Row(pet{"ant", 6}), p.Flush())
		if !errors.Is(err, errFull) {
			t.Errorf("Row, JSON %v: %v", asJSON, err)
		}
	}
}

// Control characters of a cell reach no terminal, and make up no line and no column.
func TestPlain(t *testing.T) {
	var out strings.Builder
	p := rows.New(&out, false)
	for _, cells := range []rows.Line{{"a\x1b[31m\nfalse\trow", "b"}, {"é ünd \"x\" \\", "\x7f\u0085"}} {
		if err := p.Row(cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `a\x1b[31m\nfalse\trow` + "\tb\n" + `é ünd "x" \` + "\t" + `\x7f\u0085` + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
