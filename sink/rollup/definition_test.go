package rollup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

func TestParseField(t *testing.T) {
	for text, want := range map[string]Field{
		"/a":                 {Pointer: "/a"},
		"/a/b~1c~0":          {Pointer: "/a/b~1c~0"},
		"/added:int":         {Pointer: "/added", Type: Int},
		"/added:double":      {Pointer: "/added", Type: Double},
		"/added:text":        {Pointer: "/added", Type: Text},
		"n=/added:int":       {Name: "n", Pointer: "/added", Type: Int},
		"/dc:title":          {Pointer: "/dc:title"},
		"/a:int:text":        {Pointer: "/a:int", Type: Text},
		"/a=b/c":             {Pointer: "/a=b/c"},
		"/":                  {Pointer: "/"},
		"some_name=/tags/0":  {Name: "some_name", Pointer: "/tags/0"},
		"a=b=/c":             {Name: "a=b", Pointer: "/c"}, // Validate refuses the name
		"/with space/ünïcød": {Pointer: "/with space/ünïcød"},
	} {
		if got, err := ParseField(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":         `"" is not a field: want [NAME=]/pointer[:int|:double|:text], such as /added:int`,
		"added":    `"added" is not a field`,
		"n=added":  `"n=added" is not a field`,
		"=/added":  `"=/added" is not a field`,
		"n/added":  `"n/added" is not a field`,
		"/a~b":     `the pointer "/a~b" is not a JSON pointer: write ~0 for ~ and ~1 for / inside`,
		"/a~":      `the pointer "/a~" is not a JSON pointer`,
		"/a\xff":   `the pointer "/a\xff" is not UTF-8`,
		"n=:int":   `"n=:int" is not a field`,
		"n=/~:int": `the pointer "/~" is not`,
	} {
		if got, err := ParseField(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error %s", text, got, err, want)
		}
	}
}

func TestParseBucket(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1m": time.Minute, "5m": 5 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour,
		"90s": 90 * time.Second, "0": 0, "2d": 48 * time.Hour, "-1m": -time.Minute,
		"106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := ParseBucket(text); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "1w", "d", "-1d", "1.5d", "106752d", "99999999999999999d"} {
		if got, err := ParseBucket(text); err == nil || !strings.Contains(err.Error(), "want such as") {
			t.Errorf("%q: %s, %v; want an error", text, got, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	d := Definition{
		Keys: []Field{{Pointer: "/Channel"}, {Pointer: "/a~1b/ü c", Type: Int}, {Name: "k", Pointer: "/x"}},
		Columns: []Column{
			{Op: Count},
			{Op: Sum, Field: Field{Pointer: "/added", Type: Int}},
			{Op: Min, Field: Field{Pointer: "/added"}},
			{Op: Max, Field: Field{Pointer: "/added"}},
			{Op: Last, Field: Field{Pointer: "/user/name"}},
			{Op: Last, Field: Field{Name: "score", Pointer: "/score", Type: Double}},
		},
	}
	before := d.Keys[0]
	want := []Field{
		{"channel", "/Channel", Text},
		{"a_b___c", "/a~1b/ü c", Int},
		{"k", "/x", Text},
		{"count", "", Int},
		{"sum_added", "/added", Int},
		{"min_added", "/added", Double},
		{"max_added", "/added", Double},
		{"last_user_name", "/user/name", Text},
		{"score", "/score", Double},
	}
	if got := d.WithDefaults().fields(); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if d.Keys[0] != before {
		t.Error("the original has changed")
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefinitionString(t *testing.T) {
	const want = `{"keys":[{"name":"channel","pointer":"/channel","type":"text"}],"bucket":"1m0s",` +
		`"time":"/time","columns":[{"op":"count","name":"count","type":"int"},` +
		`{"op":"last","name":"last_user","pointer":"/user","type":"text"},` +
		`{"op":"max","name":"max_added","pointer":"/added","type":"double"},` +
		`{"op":"sum","name":"sum_added","pointer":"/added","type":"int"}]}`
	if got := benchDefinition.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	same := benchDefinition.WithDefaults()
	slices.Reverse(same.Columns)
	if got := same.String(); got != want {
		t.Errorf("with defaults, reversed: %s", got)
	}
	for name, change := range map[string]func(*Definition){
		"key":     func(d *Definition) { d.Keys[0].Pointer += "x" },
		"name":    func(d *Definition) { d.Keys[0].Name += "x" },
		"type":    func(d *Definition) { d.Keys[0].Type = Int },
		"bucket":  func(d *Definition) { d.Bucket++ },
		"time":    func(d *Definition) { d.Time += "x" },
		"op":      func(d *Definition) { d.Columns[2].Op = Min },
		"columns": func(d *Definition) { d.Columns = d.Columns[1:] },
		"order":   func(d *Definition) { d.Keys = append(d.Keys, Field{Pointer: "/a"}); slices.Reverse(d.Keys) },
	} {
		d := benchDefinition.WithDefaults()
		if change(&d); d.String() == want {
			t.Errorf("a change of %s does not show", name)
		}
	}
}

func TestValidate(t *testing.T) {
	of := func(*runnel.Record) (Value, error) { return Value{}, nil }
	merge := func(into, _ Value) (Value, error) { return into, nil }
	count := []Column{{Op: Count}}
	long := "/" + strings.Repeat("x", 60)
	for _, c := range []struct {
		d    Definition
		want string // one line a fault
	}{
		{Definition{Bucket: time.Hour, Columns: count}, ""},
		{Definition{Keys: []Field{{Pointer: "/a"}}, Columns: count}, ""},
		{Definition{Bucket: 24 * time.Hour, Columns: []Column{{Op: Max, Field: Field{Pointer: "/a", Type: Text}}}}, ""},
		{Definition{Bucket: time.Hour, Columns: []Column{{Op: Own, Field: Field{Name: "x", Type: Int}, Of: of, Merge: merge}}}, ""},
		{
			Definition{},
			"rollup: there is neither a key nor a bucket, so all records would be one row: add one of them\n" +
				"rollup: there is no column: add one, such as a count",
		},
		{Definition{Bucket: -time.Hour, Columns: count}, "rollup: the bucket -1h0m0s is negative: want a part of a day, such as 1m, or 0 for none"},
		{Definition{Bucket: 7 * time.Hour, Columns: count}, "rollup: the bucket 7h0m0s does not divide a day into whole milliseconds: want such as 1m, 1h or 1d"},
		{Definition{Bucket: 48 * time.Hour, Columns: count}, "rollup: the bucket 48h0m0s does not divide a day into whole milliseconds: want such as 1m, 1h or 1d"},
		{Definition{Bucket: time.Microsecond, Columns: count}, "rollup: the bucket 1µs does not divide a day into whole milliseconds: want such as 1m, 1h or 1d"},
		{
			Definition{Keys: manyKeys(32), Columns: count},
			"rollup: there are 32 keys: a database's index takes 31",
		},
		{Definition{Bucket: time.Hour, Time: "time", Columns: count}, `rollup: the time's pointer "time" is not a JSON pointer: want it to begin with /, such as /user/name`},
		{
			Definition{Keys: []Field{{Pointer: "a"}, {Pointer: "/"}, {Pointer: "/n", Name: "N"}}, Columns: count},
			`rollup: the pointer "a" of a key is not a JSON pointer: want it to begin with /, such as /user/name` + "\n" +
				`rollup: a key with the pointer "/" has no name: NAME=/pointer gives it one` + "\n" +
				`rollup: the name "N" of a key has other characters than a to z, 0 to 9 and _: NAME=/pointer gives it another`,
		},
		{
			Definition{Keys: []Field{{Pointer: "/a"}, {Pointer: "/A"}, {Pointer: "/max_a"}}, Columns: []Column{{Op: Max, Field: Field{Pointer: "/a"}}}},
			`rollup: two columns have the name "a": NAME=/pointer names one` + "\n" +
				`rollup: two columns have the name "max_a": NAME=/pointer names one`,
		},
		{
			Definition{Keys: []Field{{Pointer: "/bucket"}, {Pointer: "/count"}, {Pointer: "/last_order"}, {Pointer: "/xmin"}}, Columns: []Column{{Op: Sum, Field: Field{Pointer: "/b"}}}},
			`rollup: the name "bucket" of a key is reserved: NAME=/pointer gives it another` + "\n" +
				`rollup: the name "count" of a key is reserved: NAME=/pointer gives it another` + "\n" +
				`rollup: the name "last_order" of a key is reserved: NAME=/pointer gives it another` + "\n" +
				`rollup: the name "xmin" of a key is reserved: NAME=/pointer gives it another`,
		},
		{
			Definition{Bucket: time.Hour, Columns: []Column{{Op: Last, Field: Field{Pointer: "/order"}}}},
			`rollup: the name "last_order" of a last column is reserved: NAME=/pointer gives it another`,
		},
		{
			Definition{Keys: []Field{{Pointer: long[:60]}, {Pointer: long}}, Columns: count},
			`rollup: the name "` + long[1:] + `" of a key has 60 bytes: NAME=/pointer gives it one of at most 59`,
		},
		{
			Definition{Bucket: time.Hour, Columns: []Column{
				{Op: Sum, Field: Field{Pointer: "/a", Type: Text}},
				{Op: Max, Field: Field{Pointer: "/a", Type: "real"}},
				{Op: "avg", Field: Field{Name: "avg", Pointer: "/a", Type: Int}},
				{Op: Count, Field: Field{Pointer: "/a", Type: Text}},
				{Op: Own, Field: Field{Name: "own", Pointer: "/a"}, Of: of},
				{Op: Last, Field: Field{Pointer: "/z"}, Merge: merge},
				{Op: Min, Field: Field{Name: "m"}},
			}},
			`rollup: the column "sum_a" is a sum of texts: want the type "int" or "double"` + "\n" +
				`rollup: the column "max_a" has the type "real": want "int", "double" or "text"` + "\n" +
				`rollup: the column "avg" has the unknown operation "avg": want "count", "sum", "min", "max", "last" or "own"` + "\n" +
				`rollup: the count "count" has the pointer "/a": a count needs none, remove it` + "\n" +
				`rollup: the count "count" has the type "text": want "int"` + "\n" +
				`rollup: the column "own" has the type "": want "int", "double" or "text"` + "\n" +
				`rollup: the own column "own" has the pointer "/a": its function Of reads the record, remove the pointer` + "\n" +
				`rollup: the own column "own" lacks a function: set Of and Merge` + "\n" +
				`rollup: the column "last_z" has a function of its own: set Op to "own", or remove it` + "\n" +
				`rollup: the pointer "" of a min column is not a JSON pointer: want it to begin with /, such as /user/name`,
		},
	} {
		got := ""
		if err := c.d.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.d, got, c.want)
		}
		if _, err := NewFolder(c.d); (err == nil) != (c.want == "") {
			t.Errorf("%s: NewFolder returned %v", c.d, err)
		}
	}
}

func manyKeys(n int) (keys []Field) {
	for i := range n {
		keys = append(keys, Field{Pointer: "/" + strings.Repeat("k", i+1)})
	}
	return keys
}
