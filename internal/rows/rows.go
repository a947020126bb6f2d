package rows

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Row is a result that is one line of text: its cells, from left to right.
type Row interface{ Cells() []string }

// Line is a row of nothing but text, for tables within a report.
type Line []string

// Cells implements Row.
func (l Line) Cells() []string { return l }

// Report is a result that is several lines of text.
type Report interface{ WriteText(w io.Writer) error }

// Printer prints results to one writer. It is buffered: the caller calls Flush after the last
// result. It is not safe for concurrent use.
type Printer struct {
	out   *bufio.Writer
	json  *json.Encoder     // nil for text
	table *tabwriter.Writer // of aligned text; nil otherwise
}

// bufferSize is large enough that millions of short lines take few writes.
const bufferSize = 1 << 16

// New returns a printer to out. Its JSON has the letters <, > and & as \u003c, \u003e and \u0026.
func New(out io.Writer, asJSON bool) *Printer {
	p := &Printer{out: bufio.NewWriterSize(out, bufferSize)}
	if asJSON {
		p.json = json.NewEncoder(p.out)
	}
	return p
}

// NewVerbatim returns a printer that leaves <, > and & in JSON as they are.
func NewVerbatim(out io.Writer, asJSON bool) *Printer {
	p := New(out, asJSON)
	if asJSON {
		p.json.SetEscapeHTML(false)
	}
	return p
}

// Align aligns the columns of the rows after it, which Flush then prints. It does nothing for JSON.
func (p *Printer) Align() {
	if p.json == nil {
		p.table = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	}
}

// Head prints the names of the columns, and aligns the rows after it. It does nothing for JSON.
func (p *Printer) Head(names ...string) error {
	if p.json != nil {
		return nil
	}
	p.Align()
	return p.Row(Line(names))
}

// Plain returns a text with its control characters as escapes, as \x1b and \n: names come from
// other programs, and could change the state of a terminal or make up a line.
func Plain(text string) string {
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return text
	}
	var plain strings.Builder
	for _, r := range text {
		if !unicode.IsControl(r) {
			plain.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		plain.WriteString(quoted[1 : len(quoted)-1])
	}
	return plain.String()
}

// Row prints a row. Without Align its cells are separated by tabs.
func (p *Printer) Row(row Row) error {
	if p.json != nil {
		return p.json.Encode(row)
	}
	cells := row.Cells()
	for i, cell := range cells {
		if plain := Plain(cell); plain != cell {
			cells = slices.Clone(cells)
			cells[i] = plain
		}
	}
	line := strings.Join(cells, "\t") + "\n"
	if p.table != nil {
		_, err := io.WriteString(p.table, line)
		return err
	}
	_, err := p.out.WriteString(line)
	return err
}

// Report prints a report.
func (p *Printer) Report(report Report) error {
	if p.json != nil {
		return p.json.Encode(report)
	}
	return report.WriteText(p.out)
}

// Flush writes the buffered results.
func (p *Printer) Flush() error {
	if p.table != nil {
		if err := p.table.Flush(); err != nil {
			return err
		}
	}
	return p.out.Flush()
}

// Print prints a single report to out.
func Print(out io.Writer, asJSON bool, report Report) error {
	p := New(out, asJSON)
	if err := p.Report(report); err != nil {
		return err
	}
	return p.Flush()
}
