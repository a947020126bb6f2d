package limit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ spec, canonical string }{
		{"", "off"},
		{"off", "off"},
		{" \n,;", "off"},
		{"aws", "aws"},
		{"aws, write-records=100", "aws,write-records=100"},
		{"off write-records=100", "write-records=100"},
		{"write-bytes=65536", "write-bytes=64KiB"},
		{"write-bytes=1025", "write-bytes=1025"},
		{"aws,write-bytes=1024KiB", "aws"}, // as it is
		{"write-bytes=off", "off"},
		{"aws,read-calls=off", "aws,read-calls=off"},
		{"orders/read-calls=off", "off"},
		{
			"aws,orders/write-bytes=64KiB,orders/read-calls=off,a/read-calls=5,list-shards=7",
			"aws,list-shards=7,orders/write-bytes=64KiB,orders/read-calls=off",
		},
		{"read-calls=9 b/read-calls=5 a/read-calls=9", "read-calls=9,b/read-calls=5"},
		{"write-bytes=1024GiB", "write-bytes=1024GiB"},
	} {
		plan, err := Parse(c.spec)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.spec, err)
			continue
		}
		if got := plan.String(); got != c.canonical {
			t.Errorf("Parse(%q) is %q, want %q", c.spec, got, c.canonical)
		}
		if (plan == nil) != (c.canonical == "off") {
			t.Errorf("Parse(%q) = %v", c.spec, plan)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ spec, text string }{
		{"aws,off", `rule "off": off must come first`},
		{"write-records=1,aws", "aws must come first"},
		{"fast", "off, aws, NAME=VALUE or STREAM/NAME=VALUE"},
		{"writes=1", `unknown limit "writes"; there are: write-bytes, write-records`},
		{"write-records=0", "a number from 1 to"},
		{"write-records=-1", "a number from 1 to"},
		{"write-records=1KiB", "a number from 1 to"},
		{"write-records=", "a number from 1 to"},
		{"write-bytes=1025GiB", "also with KiB, MiB or GiB"},
		{"write-bytes=9223372036854775808", "a number from 1 to"},
		{"update-shard-count=10001", "from 1 to 10000"},
		{"orders/list-streams=3", "list-streams is a limit of the account"},
		{"/read-calls=3", "needs a name"},
		{"or ders/read-calls=3", `rule "or"`},
		{"write-record=1", `unknown limit "write-record" (did you mean write-records?); there are: `},
		{"aws,orders/PutRecrods=1", `unknown limit "PutRecrods"; there are: `},
		{"Write-Bytes=1MiB", "did you mean write-bytes?"},
		{"a/b/read-calls=3", `unknown limit "b/read-calls"`},
		{"a:b/read-calls=3", `"a:b" is no name of a stream`},
		{"read-calls=3,read-calls=3", "set twice"},
		{"a/read-calls=3,a/read-calls=4", "set twice"},
		{strings.Repeat("aws,", 1001), "more than 1000 rules"},
	} {
		if _, err := Parse(c.spec); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("Parse(%.40q): %v, want %q", c.spec, err, c.text)
		}
	}
}

func TestValue(t *testing.T) {
	plan, err := Parse("aws,write-records=100,read-calls=off,orders/write-records=off,orders/read-calls=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id     ID
		stream string
		want   int64
	}{
		{WriteRecords, "", 100},
		{WriteRecords, "other", 100},
		{WriteRecords, "orders", off},
		{ReadCalls, "other", off},
		{ReadCalls, "orders", 2},
		{WriteBytes, "orders", 1 << 20},
	} {
		value, limited := plan.Value(c.id, c.stream)
		if limited != (c.want != off) || value != c.want {
			t.Errorf("%s of %q is %d, want %d", table[c.id].Name, c.stream, value, c.want)
		}
	}
	if _, limited := (*Plan)(nil).Value(WriteBytes, "orders"); limited {
		t.Error("no plan limits")
	}
	plan, err = Parse("write-records=100")
	if err != nil {
		t.Fatal(err)
	}
	if _, limited := plan.Value(WriteBytes, ""); limited {
		t.Error("what is not named is limited")
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, l := range All() {
		if l.Name == "" || seen[l.Name] || l.Default < 1 {
			t.Errorf("limit %d: %+v", i, l)
		}
		seen[l.Name] = true
	}
	if id, found := OfOperation("ListShards"); !found || id.Of().Name != "list-shards" {
		t.Errorf("ListShards has the limit %v, %v", id, found)
	}
	if _, found := OfOperation("PutRecords"); found {
		t.Error("PutRecords has a limit of its calls")
	}
	if id, found := OfOperation("CreateStream"); !found || id.Of().Window == 0 {
		t.Error("CreateStream has no rate")
	}
}

// docs/limits.md has a row for each limit with the default of this package.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range All() {
		window := "at any time"
		switch {
		case l.Window == day:
			window = "24 hours"
		case l.Window != 0:
			window = "second"
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", l.Name, ID(i).format(l.Default), window, l.Per)
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/limits.md has no row %s", row)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("aws,orders/write-bytes=64KiB,orders/read-calls=off")
	f.Add("off;list-shards=7 write-bytes=1GiB")
	f.Add("aws,write-records=off,a.b-c_/write-records=1000")
	f.Fuzz(func(t *testing.T, spec string) {
		plan, err := Parse(spec)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Fatalf("%v is no ErrSpec", err)
			}
			return
		}
		again, err := Parse(plan.String())
		if err != nil || again.String() != plan.String() {
			t.Fatalf("%q is %q, and that %q, %v", spec, plan, again, err)
		}
		for id := range ID(len(table)) {
			for _, stream := range []string{"", "orders", "a.b-c_"} {
				one, _ := plan.Value(id, stream)
				if other, _ := again.Value(id, stream); one != other {
					t.Fatalf("%q: %s of %q is %d or %d", spec, table[id].Name, stream, one, other)
				}
			}
		}
	})
}
