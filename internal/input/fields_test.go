package input

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/keyspace"
)

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Each format finds key, hash key and weight of a line.
func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		fields Fields
		text   string
		header string
		hash   keyspace.Key
		weight uint64
	}{
		"ndjson": {
			fields: Fields{Format: "ndjson", Key: "/user/id", HashKey: "at", Weight: "n"},
			text:   `{"user":{"id":"ada"},"at":17,"n":3}` + "\n",
			hash:   keyspace.Key{Lo: 17}, weight: 3,
		},
		"csv": {
			fields: Fields{Format: "csv", Key: "name", HashKey: "at", Weight: "n"},
			text:   "at,name,n\n17,ada,3\n", header: "at,name,n",
			hash: keyspace.Key{Lo: 17}, weight: 3,
		},
		"lines": {
			fields: Fields{Format: "lines", Key: "2"},
			text:   "\n3  ada\n", hash: keyspace.Of("ada"), weight: 1,
		},
		"the hash key alone": {
			fields: Fields{Format: "lines", HashKey: "1", HashKeyAlone: true},
			text:   "17 ada\n", hash: keyspace.Key{Lo: 17}, weight: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			format, err := New(c.fields)
			if err != nil {
				t.Fatal(err)
			}
			file := written(t, c.text)
			want := "ada"
			if c.fields.HashKeyAlone {
				want = "17"
			}
			lines := 0
			err = format.Read(t.Context(), []string{file}, func(l Line) error {
				lines++
				if l.Key != want || l.Hash() != c.hash || l.Weight != c.weight ||
					string(l.Header) != c.header {
					t.Errorf("%+v, hash key %s", l, l.Hash())
				}
				return nil
			})
			if err != nil || lines != 1 {
				t.Errorf("%d lines, %v", lines, err)
			}
			if header, err := format.Header(t.Context(), file); header != c.header || err != nil {
				t.Errorf("header %q, %v", header, err)
			}
		})
	}
}

// A wrong field, file or line is a usage error that names it.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fields     Fields
		text, want string
	}{
		{Fields{Format: "ndjson", HashKey: "at"}, "", "--key is missing"},
		{Fields{Format: "xml", Key: "id"}, "", "--format xml: want ndjson, csv or lines"},
		{Fields{Format: "lines", Key: "0"}, "", "--key 0: with --format lines"},
		{Fields{Format: "ndjson", Key: "id"}, "{}\n", "line 1: --key id: "},
		{Fields{Format: "ndjson", Key: "id"}, `{"id":""}`, "line 1: --key id: the key is empty"},
		{Fields{Format: "lines", Key: "1"}, strings.Repeat("a", 257), "the key has 257 characters"},
		{Fields{Format: "lines", Key: "1"}, "\xff", "the key is not valid UTF-8"},
		{Fields{Format: "lines", Key: "3"}, "a b", "the line has 2 words, no word 3"},
		{Fields{Format: "lines", Key: "1", HashKey: "2"}, "a b", "line 1: --hash-key 2: "},
		{Fields{Format: "lines", Key: "1", Weight: "2"}, "a -1", `--weight 2: "-1" is no whole number`},
		{Fields{Format: "csv", Key: "id"}, "a,b\n1,2\n", `no column "id"; it has a, b`},
		{Fields{Format: "csv", Key: "a"}, "a,b\n1\n", "line 2: --key a: 1 fields, the header has 2"},
		{Fields{Format: "csv", Key: "a"}, "a,\"b\n", "line 1: not a line of CSV"},
	} {
		format, err := New(c.fields)
		if err == nil {
			format.Advice = "; nothing was sent"
			err = format.Read(t.Context(), []string{written(t, c.text)}, func(Line) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || exit.Status(err) != exit.StatusUsage {
			t.Errorf("%+v: %v, want %q", c.fields, err, c.want)
		}
	}
	err := Names().Read(t.Context(), []string{filepath.Join(t.TempDir(), "no")}, nil)
	if exit.Status(err) != exit.StatusUsage || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
