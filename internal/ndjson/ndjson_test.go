package ndjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

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

// Plain, gzip and zstd inputs give the same lines; blank lines are skipped but counted.
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

// Next does not return a line that a read error cuts off, since its start could pass for a whole
// line.
func TestLineThatIsCutOff(t *testing.T) {
	var zipped bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(gz, "first\nsecond is longer")
	_ = gz.Flush()
	for name, r := range map[string]io.Reader{
		"gzip": bytes.NewReader(zipped.Bytes()),
		"read": io.MultiReader(strings.NewReader("first\nsecond is"), iotest.ErrReader(io.ErrClosedPipe)),
	} {
		input, err := ndjson.NewLines("input", r)
		if err != nil {
			t.Fatal(err)
		}
		first, err := input.Next()
		if string(first) != "first" || err != nil {
			t.Errorf("%s: %q, %v", name, first, err)
		}
		if line, err := input.Next(); err == nil || errors.Is(err, io.EOF) ||
			!strings.HasPrefix(err.Error(), "input, after line 1: ") {
			t.Errorf("%s: then %q, %v", name, line, err)
		}
		_ = input.Close()
	}
}

func TestField(t *testing.T) {
	const document = ` { "id" : "7" , "n":1.50, "a":{"b":[10,{"c":"x\u00e9\"y"},[ ],"z"]}, "":"e",
		"o":{"k": [1, "a b"] }, "nil":null, "blank":"", "id2":"a","id2":"b", "a/b":"s", "m~n":"t",
		"\u006bey":"esc", "t":true, "tricky":"},]\\" }`
	for path, want := range map[string]string{
		"id": "7", "n": "1.50", "/a/b/0": "10", "/a/b/1/c": `xé"y`, "/a/b/3": "z", "/a/b/2": "[]",
		"/": "e", "o": `{"k":[1,"a b"]}`, "id2": "b", "a/b": "s", "/a~1b": "s", "/m~0n": "t",
		"key": "esc", "t": "true", "tricky": `},]\`, "blank": "",
	} {
		if got, err := fieldOf(t, path, document); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"none", "/a/b/9", "/a/b/01", "/a/b/-", "nil", "/id/x", "/a/c"} {
		if got, err := fieldOf(t, path, document); !errors.Is(err, ndjson.ErrMissing) {
			t.Errorf("%s: %q, %v, want ErrMissing", path, got, err)
		}
	}
	for _, bad := range []string{"", "x", `{"a":1`, `{"a":1}{`} {
		if _, err := fieldOf(t, "a", bad); !errors.Is(err, ndjson.ErrNotJSON) {
			t.Errorf("%q: %v, want ErrNotJSON", bad, err)
		}
	}
	for _, path := range []string{"", "/a~", "/~2"} {
		if _, err := ndjson.ParseField(path); err == nil {
			t.Errorf("%q was taken for a field", path)
		}
	}
}

func fieldOf(t *testing.T, path, document string) (string, error) {
	t.Helper()
	field, err := ndjson.ParseField(path)
	if err != nil {
		t.Fatal(err)
	}
	return field.Of([]byte(document))
}

// FuzzField compares with encoding/json.
func FuzzField(f *testing.F) {
	f.Add([]byte(`{"id":"a","x":[{"id":3}],"id":{"k":null}}`), "id")
	f.Add([]byte(` [ 1 , {"\u0061" : "\ud83d\ude00"} ] `), "/1/a")
	f.Fuzz(func(t *testing.T, document []byte, name string) {
		field, err := ndjson.ParseField(name)
		if err != nil {
			return
		}
		got, err := field.Of(document)
		if json.Valid(document) == errors.Is(err, ndjson.ErrNotJSON) {
			t.Fatalf("%q: %v", document, err)
		}
		var members map[string]json.RawMessage
		if name[0] == '/' || json.Unmarshal(document, &members) != nil {
			return
		}
		value, there := members[name]
		if missing := !there || string(value) == "null"; missing != (err != nil) {
			t.Fatalf("%q of %q: %v", name, document, err)
		}
		want := ""
		if err == nil && value[0] == '"' {
			_ = json.Unmarshal(value, &want)
		} else if err == nil {
			var compact bytes.Buffer
			_ = json.Compact(&compact, value)
			want = compact.String()
		}
		if got != want {
			t.Fatalf("%q of %q: %q, want %q", name, document, got, want)
		}
	})
}

// BenchmarkFieldOf reads two fields of an event of 1.4 KB, as put does with --key, beside
// encoding/json.
func BenchmarkFieldOf(b *testing.B) {
	document := []byte(`{"id":"2489368070","type":"PushEvent","actor":{"id":9152315,"login":"a-user",` +
		`"url":"https://example.com/users/a-user"},"repo":{"id":28688495,"name":"a-user/repository"},` +
		`"payload":{"push_id":536740396,"size":1,"commits":[{"message":"` + strings.Repeat("words ", 200) +
		`"}]},"public":true,"created_at":"2015-01-01T00:00:00Z"}`)
	for _, text := range []string{"type", "/repo/name"} {
		field, err := ndjson.ParseField(text)
		if err != nil {
			b.Fatal(err)
		}
		name := strings.TrimPrefix(strings.ReplaceAll(text, "/", "."), ".")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := field.Of(document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("encoding json", func(b *testing.B) {
		for b.Loop() {
			var event struct {
				Repo struct {
					Name string `json:"name"`
				} `json:"repo"`
			}
			if err := json.Unmarshal(document, &event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding json, free names", func(b *testing.B) { // the field is a flag's value
		for b.Loop() {
			var event, repo map[string]json.RawMessage
			var name string
			if json.Unmarshal(document, &event) != nil || json.Unmarshal(event["repo"], &repo) != nil ||
				json.Unmarshal(repo["name"], &name) != nil {
				b.Fatal("not read")
			}
		}
	})
}

// FuzzFieldOf compares each value, or the reason why there is none, with encoding/json's.
func FuzzFieldOf(f *testing.F) {
	for _, document := range []string{
		`{"a":{"b":[1,{"c":"x\u00e9"}]},"a":{"b":2}}`, `{"a":null}`, `[[0],["b"]]`, `{"a":1}{}`, `{"a":1`,
		"{\"a\":\"\xff\",\"\xff\":1}", `{"a" : [ 1 , {"b":"<&>"} ] }`, `{"\u0061":-0.10e3}`, ``, `"a"`,
		`{"a":"\ud800"}`, `{"a":"\ud800` + "\xff" + `"}`,
	} {
		for _, path := range []string{"a", "/a/b", "/a/1/b", "/1/0", "/0", "/a/b/1/c", "\ufffd"} {
			f.Add([]byte(document), path)
		}
	}
	f.Fuzz(func(t *testing.T, document []byte, text string) {
		field, err := ndjson.ParseField(text)
		if err != nil {
			return
		}
		got, err := field.Of(document)
		want, wantErr := reference(document, text)
		if got != want || !errors.Is(err, wantErr) {
			t.Errorf("%q in %q: %q, %v, want %q, %v", text, document, got, err, want, wantErr)
		}
	})
}

// reference is Field.Of by encoding/json.
func reference(document []byte, field string) (string, error) {
	if !json.Valid(document) {
		return "", ndjson.ErrNotJSON
	}
	path := []string{field}
	if field[0] == '/' {
		path = strings.Split(field[1:], "/")
	}
	value := json.RawMessage(document)
	for _, name := range path {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		var object map[string]json.RawMessage
		var array []json.RawMessage
		next := json.RawMessage(nil)
		if field[0] != '/' {
			name = field
		}
		if json.Unmarshal(value, &object) == nil && object != nil {
			next = object[name]
		} else if json.Unmarshal(value, &array) == nil {
			for i := range array {
				if strconv.Itoa(i) == name {
					next = array[i]
				}
			}
		}
		if value = next; value == nil {
			return "", ndjson.ErrMissing
		}
	}
	var text *string
	switch {
	case string(value) == "null":
		return "", ndjson.ErrMissing
	case json.Unmarshal(value, &text) == nil && text != nil:
		return *text, nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.String(), err
}

// OpenFile reads plain and compressed files and counts their lines. It refuses missing and broken
// files.
func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	_, _ = zipped.Write([]byte(text))
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"plain": []byte(text), "packed.gz": packed.Bytes()} {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		lines, err := ndjson.OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []int64
		for {
			if _, err = lines.Next(); err != nil {
				break
			}
			numbers = append(numbers, lines.Number())
		}
		if !errors.Is(err, io.EOF) || !slices.Equal(numbers, []int64{1, 4, 5}) {
			t.Errorf("%s: lines %v, %v", name, numbers, err)
		}
		if err := lines.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := ndjson.OpenFile(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	broken := filepath.Join(dir, "broken.gz")
	if err := os.WriteFile(broken, packed.Bytes()[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ndjson.OpenFile(broken); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("a file that is cut off: %v", err)
	}
	field, err := ndjson.ParseField("/a~1b")
	if err != nil || field.String() != "/a~1b" {
		t.Errorf("a field is shown as %q, %v", field, err)
	}
}
