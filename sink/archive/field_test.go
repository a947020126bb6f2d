package archive

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestField(t *testing.T) {
	const doc = ` { "id" : "7" , "n":1.50, "a":{"b":[10,{"c":"x\u00e9\"y"},[ ],"z"]}, "":"e",
		"o":{"k": [1, "a b"] }, "nil":null, "blank":"", "id2":"a","id2":"b", "a/b":"s", "m~n":"t",
		"\u006bey":"esc", "t":true, "tricky":"},]\\" }`
	for path, want := range map[string]string{
		"id": "7", "n": "1.50", "/a/b/0": "10", "/a/b/1/c": `xé"y`, "/a/b/3": "z", "/a/b/2": "[]",
		"/": "e", "o": `{"k":[1,"a b"]}`, "id2": "b", "a/b": "s", "/a~1b": "s", "/m~0n": "t",
		"key": "esc", "t": "true", "tricky": `},]\`,
		"none": "", "/a/b/9": "", "/a/b/01": "", "/a/b/-": "", "nil": "", "blank": "", "/id/x": "",
		"/a/c": "",
	} {
		f, err := parseField(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f.text([]byte(doc)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{"/a~", "/~2"} {
		if _, err := parseField(path); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

// FuzzField compares with encoding/json.
func FuzzField(f *testing.F) {
	f.Add([]byte(`{"id":"a","x":[{"id":3}],"id":{"k":null}}`), "id")
	f.Add([]byte(` [ 1 , {"\u0061" : "\ud83d\ude00"} ] `), "/1/a")
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		parsed, err := parseField(path)
		if err != nil || !json.Valid(doc) {
			return
		}
		got, ok := parsed.text(doc)
		var members map[string]json.RawMessage
		if len(parsed) != 1 || json.Unmarshal(doc, &members) != nil {
			return
		}
		value, there := members[parsed[0]]
		want := ""
		if there && !bytes.Equal(value, []byte("null")) {
			if value[0] != '"' {
				var compact bytes.Buffer
				if err := json.Compact(&compact, value); err != nil {
					t.Fatal(err)
				}
				want = compact.String()
			} else if err := json.Unmarshal(value, &want); err != nil {
				t.Fatal(err)
			}
		}
		if got != want || ok != (want != "") {
			t.Fatalf("%q of %q: %q, want %q", path, doc, got, want)
		}
	})
}
