package rollup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

// readOne returns the value of a field as a Max column, or the reason why the record is bad.
func readOne(t *testing.T, data, pointer string, of Type) (Value, string) {
	t.Helper()
	d := Definition{
		Bucket:  time.Hour,
		Columns: []Column{{Op: Max, Field: Field{Name: "v", Pointer: pointer, Type: of}}},
	}
	f, err := NewFolder(d)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Add(&runnel.Record{Data: []byte(data), ArrivalTime: time.UnixMilli(1)})
	if err != nil {
		return Value{}, reasonOf(t, f, err)
	}
	return f.Rows()[0].Values[0], ""
}

// reasonOf returns the reason of a *BadError, after which an empty folder must be empty.
func reasonOf(t *testing.T, f *Folder, err error) string {
	t.Helper()
	var bad *BadError
	if !errors.As(err, &bad) {
		t.Fatalf("%v is not a *BadError", err)
	}
	if f.Len() != 0 || len(f.Rows()) != 0 {
		t.Errorf("a bad record left %v", f.Rows())
	}
	return bad.Reason
}

func TestPointers(t *testing.T) {
	for _, c := range []struct{ data, pointer, want, reason string }{
		{`{"a":"x"}`, "/a", "x", ""},
		{` {"b":[],"a" : "x" } `, "/a", "x", ""},
		{`{"a":{"b":{"c":"x"}}}`, "/a/b/c", "x", ""},
		{`{"tags":["x","y",["z"]]}`, "/tags/0", "x", ""},
		{`{"tags":["x","y",["z"]]}`, "/tags/2/0", "z", ""},
		{`{"tags":["x"]}`, "/tags/1", "", "it has no /tags/1"},
		{`{"tags":["x"]}`, "/tags/00", "", "it has no /tags/00"},
		{`{"tags":["x"]}`, "/tags/-", "", "it has no /tags/-"},
		{`{"tags":{"0":"x","00":"y"}}`, "/tags/00", "y", ""},
		{`["x",{"a":"y"}]`, "/1/a", "y", ""},
		{`{"":"x"}`, "/", "x", ""},
		{`{"a/b":{"c~d":"x"}}`, "/a~1b/c~0d", "x", ""},
		{`{"~1":"x","/":"y"}`, "/~01", "x", ""},
		{`{"\u0061\n":"x"}`, "/a\n", "x", ""},
		{`{"é":"x"}`, "/é", "x", ""},
		{`{"\u00e9":"x"}`, "/é", "x", ""},
		// The last of several members with one name counts, with all that is in it.
		{`{"a":"x","a":"y"}`, "/a", "y", ""},
		{`{"a":"x","\u0061":"y"}`, "/a", "y", ""},
		{`{"a":{"b":"x"},"a":{"c":"y"}}`, "/a/b", "", "it has no /a/b"},
		{`{"a":{"b":"x"},"a":1}`, "/a/b", "", "it has no /a/b"},
		{`{"a":["x"],"a":[]}`, "/a/0", "", "it has no /a/0"},
		{`{"a":"x","a":null}`, "/a", "", "/a is null"},
		{`{}`, "/a", "", "it has no /a"},
		{`"a"`, "/a", "", "it has no /a"},
		{`{"a":null}`, "/a", "", "/a is null"},
		{`{"a":null}`, "/a/b", "", "it has no /a/b"},
	} {
		got, reason := readOne(t, c.data, c.pointer, Text)
		if got.Text != c.want || reason != c.reason {
			t.Errorf("%s %s: %q, %q; want %q, %q", c.data, c.pointer, got.Text, reason, c.want, c.reason)
		}
	}
}

// TestNestedPointers reads a value and a part of it at once.
func TestNestedPointers(t *testing.T) {
	var columns []Column
	for _, pointer := range []string{"/a/b", "/a", "/a/b/0", "/a", "/d"} {
		columns = append(columns, Column{Op: Max, Field: Field{
			Name: fmt.Sprint("c", len(columns)), Pointer: pointer, Type: Text,
		}})
	}
	f, err := NewFolder(Definition{Bucket: time.Hour, Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	record := runnel.Record{
		Data:        []byte(`{"a":0,"d":"last","a":{"b" : [ "x" ,2],"c":true}}`),
		ArrivalTime: time.UnixMilli(1),
	}
	if err := f.Add(&record); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, value := range f.Rows()[0].Values {
		got = append(got, value.Text)
	}
	whole := `{"b":["x",2],"c":true}`
	if want := []string{`["x",2]`, whole, "x", whole, "last"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestNotJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, data := range []string{
		"", " ", "x", "{", `{"a":1`, `{"a":1}}`, `{"a":1} {"a":1}`, `{"a":1},`, `{"a":1}x`, `{"a":1,}`,
		`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":NaN}`, `{'a':1}`, `{a:1}`, `{"a":[1,]}`,
		"{\"a\":\"\xff\"}", "{\"a\":1,\"\xff\":1}", "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", `{"a":"\x"}`,
		"\ufeff{\"a\":1}", "{\"a\":1}\x00", `{"a":1,"b":"\ud83"}`, `{"a":1,"b":` + deep(10_000) + `}`,
	} {
		if value, reason := readOne(t, data, "/a", Text); reason != "it is not JSON in UTF-8" {
			t.Errorf("%.60q: %v, %q", data, value, reason)
		}
	}
	if value, reason := readOne(t, `{"a":1,"b":`+deep(9_999)+`}`, "/a", Int); value.Int != 1 {
		t.Errorf("10,000 levels: %v, %q", value, reason)
	}
}

func TestInt(t *testing.T) {
	const wide, no = "/a is not an integer of 64 bits", "/a is "
	for _, c := range []struct {
		number string
		want   int64
		reason string
	}{
		{"0", 0, ""},
		{"-0", 0, ""},
		{"7", 7, ""},
		{"-7", -7, ""},
		{"1.0", 1, ""},
		{"1e3", 1000, ""},
		{"1E+3", 1000, ""},
		{"1200e-2", 12, ""},
		{"12.5e1", 125, ""},
		{"0.00e999999999999999999999", 0, ""},
		{"0e-5", 0, ""},
		{"999999999999999999", 999999999999999999, ""},
		{"9223372036854775807", 9223372036854775807, ""},
		{"-9223372036854775808", -9223372036854775808, ""},
		{"9007199254740993", 9007199254740993, ""}, // no float64 has it
		{"9223372036854775807.000", 9223372036854775807, ""},
		{"9.223372036854775807e18", 9223372036854775807, ""},
		{"0.00000000000000000001e20", 1, ""},
		{"100000000000000000000e-20", 1, ""},
		{"9223372036854775808", 0, wide},
		{"-9223372036854775809", 0, wide},
		{"18446744073709551616", 0, wide}, // 2^64
		{"99999999999999999999", 0, wide},
		{"1e19", 0, wide},
		{"1e20", 0, wide},
		{"1e999999999999999999999", 0, wide},
		{"1e18446744073709551617", 0, wide}, // 2^64+1
		{"1e-999999999999999999999", 0, wide},
		{"1.5", 0, wide},
		{"1e-1", 0, wide},
		{"9007199254740993.0000000000000001", 0, wide},
		{`"7"`, 0, no + "a string, not a number"},
		{"true", 0, no + "a boolean, not a number"},
		{"{}", 0, no + "an object, not a number"},
		{"[7]", 0, no + "an array, not a number"},
		{"null", 0, no + "null"},
	} {
		got, reason := readOne(t, `{"a":`+c.number+`}`, "/a", Int)
		if got != (Value{Int: c.want}) || reason != c.reason {
			t.Errorf("%s: %v, %q; want %d, %q", c.number, got, reason, c.want, c.reason)
		}
	}
}

func TestDouble(t *testing.T) {
	const wide, no = "/a is beyond the range of a double", "/a is "
	for _, c := range []struct {
		number string
		want   float64
		reason string
	}{
		{"0", 0, ""},
		{"-1.25", -1.25, ""},
		{"0.1", 0.1, ""},
		{"1.7976931348623157e308", 1.7976931348623157e308, ""},
		{"1.8e308", 0, wide},
		{"-1e309", 0, wide},
		{"1e-400", 0, ""},
		{`"1"`, 0, no + "a string, not a number"},
		{"false", 0, no + "a boolean, not a number"},
		{"null", 0, no + "null"},
	} {
		got, reason := readOne(t, `{"a":`+c.number+`}`, "/a", Double)
		if got != (Value{Double: c.want}) || reason != c.reason {
			t.Errorf("%s: %v, %q; want %g, %q", c.number, got, reason, c.want, c.reason)
		}
	}
	for _, zero := range []string{"-0", "-0.0", "-1e-400"} {
		if got, _ := readOne(t, `{"a":`+zero+`}`, "/a", Double); fmt.Sprint(got.Double) != "0" {
			t.Errorf("%s: %g, want 0", zero, got.Double)
		}
	}
}

func TestText(t *testing.T) {
	const surrogate = "/a has half of a surrogate pair, which is no character"
	for _, c := range []struct{ json, want, reason string }{
		{`""`, "", ""},
		{`"é☃"`, "é☃", ""},
		{`"\u00e9\n\"\\\/\ud83d\ude00"`, "é\n\"\\/😀", ""},
		{`"\ufffd"`, "\ufffd", ""},
		{`true`, "true", ""},
		{`1.50e1`, "1.50e1", ""},
		{"{ \"b\" :\t[ 1 ,\r\n2 ] , \"c d\":\" \\\" \" }", `{"b":[1,2],"c d":" \" "}`, ""},
		{`[ "\u0000" , "\ud800" ]`, `["\u0000","\ud800"]`, ""}, // JSON, in which they can be kept
		{`["\\" , "x y"]`, `["\\","x y"]`, ""},
		{`null`, "", "/a is null"},
		{`"x\u0000"`, "", "/a has the character U+0000, which no database takes"},
		{`"\ud800"`, "", surrogate},
		{`"\udc00"`, "", surrogate},
		{`"\ude00\ud83d"`, "", surrogate},
		{`"\ud83dx"`, "", surrogate},
	} {
		got, reason := readOne(t, `{"a":`+c.json+`}`, "/a", Text)
		if got != (Value{Text: c.want}) || reason != c.reason {
			t.Errorf("%s: %v, %q; want %q, %q", c.json, got, reason, c.want, c.reason)
		}
	}
	// In a text that is not used, they do no harm.
	got, reason := readOne(t, `{"b":"\ud800\u0000","\udc00":1,"a":"x"}`, "/a", Text)
	if got.Text != "x" || reason != "" {
		t.Errorf("unused: %v, %q", got, reason)
	}
}

// addKeys returns the rows of one record with the keys /a and /b, or the reason.
func addKeys(t *testing.T, of Type, data string) ([]Row, string) {
	t.Helper()
	f, err := NewFolder(Definition{
		Keys:    []Field{{Pointer: "/a", Type: of}, {Pointer: "/b", Type: of}, {Pointer: "/c", Type: of}},
		Columns: []Column{{Op: Count}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(&runnel.Record{Data: []byte(data)}); err != nil {
		return nil, reasonOf(t, f, err)
	}
	return f.Rows(), ""
}

func TestKeys(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `é"` }
	keys := func(a, b, c string) string { return `{"a":` + a + `,"b":` + b + `,"c":` + c + `}` }
	for _, c := range []struct{ data, reason string }{
		{keys(text(1024), text(1023), `""`), ""},
		{keys(text(1024), text(1023), `"x"`), ""},
		{keys(text(1024), text(1024), `"x"`), "its text keys have 2049 bytes together, and an index takes 2048"},
		{keys(text(1025), `""`, `""`), "/a has 1025 bytes, and a key at most 1024"},
		{keys(`""`, `["\u0041"]`, `false`), ""},
		{keys(`""`, `null`, `""`), "/b is null"},
		{`{"a":1,"b":2}`, "it has no /c"},
		{keys(`""`, `"\u0000"`, `""`), "/b has the character U+0000, which no database takes"},
	} {
		if _, reason := addKeys(t, Text, c.data); reason != c.reason {
			t.Errorf("%.40s: %q, want %q", c.data, reason, c.reason)
		}
	}
	rows, _ := addKeys(t, Int, keys("1.0", "-5", "0"))
	if want := []Value{{Int: 1}, {Int: -5}, {}}; len(rows) != 1 || !slices.Equal(rows[0].Keys, want) {
		t.Errorf("%v, want the keys %v", rows, want)
	}
	if _, reason := addKeys(t, Int, keys("1", "true", "1")); reason != "/b is a boolean, not a number" {
		t.Error(reason)
	}
}
