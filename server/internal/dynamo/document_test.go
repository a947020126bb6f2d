package dynamo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func jsonValue(t testing.TB, text string) value {
	t.Helper()
	d, err := readDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value{document: d}
}

// tree converts a document's value into the same types as encoding/json.
func (v value) tree(t *testing.T) any {
	switch v.kind() {
	case '{':
		object := map[string]any{}
		for one := range v.inner() {
			if _, twice := object[string(one.name())]; twice {
				t.Fatalf("%s is there twice", one.name())
			}
			object[string(one.name())] = one.tree(t)
		}
		last := ""
		for i, one := range v.byName() {
			if i > 0 && string(one.name()) <= last {
				t.Fatalf("%s is out of order", one.name())
			}
			last = string(one.name())
		}
		return object
	case '[':
		list := make([]any, 0, v.node().inner)
		for one := range v.inner() {
			list = append(list, one.tree(t))
		}
		return list
	case '"':
		return v.text()
	case 't', 'f':
		return v.kind() == 't'
	case 'n':
		return nil
	}
	return json.Number(v.raw())
}

// FuzzDocument compares documents with encoding/json: both give the same tree, or both refuse.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"TableName":"t","Key":{"k":{"S":"a"}},"Limit":12.50E+3}`, ` null `, `[]`, `{}`, ``, ` `,
		`{"a":1,"b":2,"a":3,"\u0061":4}`, `{"a":{"a":1},"a":null}`, "\"\xff\xc3\x28\"", "{\"\xff\":1}",
		`"\ud800"`, `"\ud800\udc00\udc00x"`, `"\"\\\/\b\f\n\r\t"`, `"\u00"`, `"\x"`, "\"\x00\"", "\"\x7f\"",
		`1 2`, `{} {}`, `[1,]`, `[,1]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `{"a":1 "b":2}`, `[1 2]`, `[1}`, `]`,
		`01`, `-`, `-0`, `+1`, `.5`, `1.`, `1e`, `1e999999`, `nul`, `nulls`, `True`, "\ufeff{}", "{}\x00",
		`1234567890123456789012345678901234567890`, `/**/{}`, `{"a":1}x`, "\v{}", `"`, `{"a`, `{"a":`, `[`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat(`{"a":`, 90) + "1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { compareDocument(t, body) })
}

func compareDocument(t *testing.T, body []byte) {
	t.Helper()
	before := bytes.Clone(body)
	d, err := readDocument(body)
	if !bytes.Equal(before, body) {
		t.Fatalf("%.99q has become %.99q", before, body)
	}
	var want any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if valid := json.Valid(body); valid != (err == nil) {
		t.Fatalf("%.99q: valid is %v, but %v", body, valid, err)
	}
	if err != nil {
		return
	}
	if err := decoder.Decode(&want); err != nil {
		t.Fatalf("%.99q: %v", body, err)
	}
	whole := value{d, 0}
	if got := whole.tree(t); !reflect.DeepEqual(got, want) {
		t.Fatalf("%.99q: %v, want %v", body, got, want)
	}
	if !bytes.Equal(whole.raw(), bytes.Trim(body, " \t\r\n")) {
		t.Fatalf("%.99q: %.99q", body, whole.raw())
	}
}

// TestDocumentDepth checks the largest depth that encoding/json accepts, and bodies far deeper.
func TestDocumentDepth(t *testing.T) {
	for _, levels := range []int{9_999, 10_000, 10_001, 10_002, 5_000_000} {
		compareDocument(t, []byte(strings.Repeat("[", levels)+strings.Repeat("]", levels)))
		compareDocument(t, []byte(strings.Repeat(`{"a":`, levels)+"1"+strings.Repeat("}", levels)))
		compareDocument(t, []byte(strings.Repeat("[", levels)))
	}
}

// TestDocumentKeepsItsBuffer has a name with escapes in a body that is a part of a pooled buffer.
func TestDocumentKeepsItsBuffer(t *testing.T) {
	buffer := []byte(`{"\u0041":1,"\u0042":{"B\n":2}}` + " what is behind the body")
	before := bytes.Clone(buffer)
	d, err := readDocument(buffer[:bytes.IndexByte(buffer, ' ')])
	if err != nil || !bytes.Equal(buffer, before) {
		t.Fatalf("%q: %v", buffer, err)
	}
	if name := (value{d, 3}).name(); string(name) != "B\n" {
		t.Fatalf("%q", name)
	}
}

// TestDocumentDoubles has duplicate names among few members and among many.
func TestDocumentDoubles(t *testing.T) {
	for _, members := range []int{2, 15, 16, 17, 18, 1000} {
		var body strings.Builder
		for i := range members {
			name := string(rune('a' + i%7))
			if i%3 == 0 {
				name = `\u00` + string("67"[i%2]) + string(rune('1'+i%8))
			}
			body.WriteString(`,"` + name + `":` + strings.Repeat("1", i%5+1) + "\n")
		}
		compareDocument(t, []byte("{"+body.String()[1:]+"}"))
	}
}
