package ndjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/runnel-stream/runnel/internal/ndjson"
)

const text = "{\"a\":1}\n\n  \n{\"a\":2}\r\nlast"

func read(t *testing.T, r io.Reader) (lines []string, last string) {
	t.Helper()
	input, err := ndjson.NewLines("input", r)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	for {
		line, err := input.Next()
		if errors.Is(err, io.EOF) {
			return lines, input.Where()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
}

// Lines are the same plain, in gzip and in zstd; blank ones are skipped but counted.
func TestLines(t *testing.T) {
	var zipped, zstandard bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(gz, text)
	_ = gz.Close()
	zs, _ := zstd.NewWriter(&zstandard)
	_, _ = io.WriteString(zs, text)
	_ = zs.Close()
	for name, r := range map[string]io.Reader{
		"plain": strings.NewReader(text), "gzip": &zipped, "zstd": &zstandard,
	} {
		lines, where := read(t, r)
		if strings.Join(lines, "|") != `{"a":1}|{"a":2}|last` || where != "input, line 5" {
			t.Errorf("%s: %q, at the end %s", name, lines, where)
		}
	}
	if lines, _ := read(t, strings.NewReader("")); len(lines) != 0 {
		t.Errorf("an empty input has lines: %q", lines)
	}
}

func TestField(t *testing.T) {
	const document = `{"repo":"a/b","n": 12.50,"o":{"x":[true,{"y":"deep"}],"a/b":null},"":"e","u":"\u00e9"}`
	for _, c := range []struct {
		field, want string
		err         error
	}{
		{"repo", "a/b", nil},
		{"/repo", "a/b", nil},
		{"n", "12.50", nil},
		{"u", "é", nil},
		{"/o/x/1/y", "deep", nil},
		{"/o/x/0", "true", nil},
		{"/o/a~1b", "null", nil},
		{"/o/x", `[true,{"y":"deep"}]`, nil},
		{"/", "e", nil},
		{"none", "", ndjson.ErrMissing},
		{"/o/x/2", "", ndjson.ErrMissing},
		{"/o/x/01", "", ndjson.ErrMissing},
		{"/repo/x", "", ndjson.ErrMissing},
	} {
		field, err := ndjson.ParseField(c.field)
		if err != nil {
			t.Fatal(err)
		}
		got, err := field.Of([]byte(document))
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.field, got, err, c.want, c.err)
		}
	}
	field, _ := ndjson.ParseField("a")
	for _, bad := range []string{"", "x", `{"a":1`, `{"a":1}{`, "12", `"a"`} {
		if _, err := field.Of([]byte(bad)); !errors.Is(err, ndjson.ErrNotJSON) {
			t.Errorf("%q: %v, want ErrNotJSON", bad, err)
		}
	}
	if _, err := ndjson.ParseField(""); err == nil {
		t.Error("an empty field was taken")
	}
}

func FuzzField(f *testing.F) {
	f.Add("/o/x/0", `{"o":{"x":[1]}}`)
	f.Add("a", `{"a":"\ud800"}`)
	f.Fuzz(func(t *testing.T, name, document string) {
		field, err := ndjson.ParseField(name)
		if err != nil {
			return
		}
		if _, err := field.Of([]byte(document)); err == nil && !json.Valid([]byte(document)) {
			t.Fatalf("%q was read from what is not JSON: %q", name, document)
		}
	})
}
