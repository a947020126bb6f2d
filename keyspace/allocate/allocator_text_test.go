package allocate_test

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// The tree as it grows key by key, from nothing.
func TestTreeOfNew(t *testing.T) {
	a := allocate.New(spaceOf(t, "128"))
	if got := a.Tree(); got != "()" {
		t.Errorf("the empty tree is %s", got)
	}
	for _, want := range []string{
		"(64)",
		"((32) 64)",
		"((32) 64 (96))",
		"(((16) 32) 64 (96))",
		"(((16) 32) 64 ((80) 96))",
		"(((16) 32 (48)) 64 ((80) 96))",
		"(((16) 32 (48)) 64 ((80) 96 (112)))",
	} {
		if _, err := a.Allocate(); err != nil {
			t.Fatal(err)
		}
		if got := a.Tree(); got != want {
			t.Errorf("the tree is %s, want %s", got, want)
		}
	}
}

// The tree over keys that were there before, with the middles above them.
func TestTreeOfExisting(t *testing.T) {
	a := allocate.New(spaceOf(t, "128"))
	if err := a.Add(keysOf(57, 9, 32, 0)...); err != nil { // the order does not matter
		t.Fatal(err)
	}
	const left = "((((((((0) 1) 2) 4) 8 (((9) 10) 12)) 16) 32 (48 (56 (((57) 58) 60)))) 64"
	for _, want := range []string{
		left + ")",
		left + ")",
		left + " (96))",
		left + " ((80) 96))",
		left + " ((80) 96 (112)))",
		left + " (((72) 80) 96 (112)))",
		left + " (((72) 80) 96 (112)))", // 48 was there before
		left + " (((72) 80) 96 ((104) 112)))",
		left + " (((72) 80) 96 ((104) 112)))",
	} {
		if got := a.Tree(); got != want {
			t.Errorf("the tree is\n%s, want\n%s", got, want)
		}
		if _, err := a.Allocate(); err != nil {
			t.Fatal(err)
		}
	}
}

// 23 keys, in their levels.
func TestTableOfNew(t *testing.T) {
	a := allocate.New(spaceOf(t, "128"))
	for range 23 {
		if _, err := a.Allocate(); err != nil {
			t.Fatal(err)
		}
	}
	const want = `
Shards | Key distribution
-------+-------------------------
1      |
2      | 64
4      | 32 96
8      | 16 48 80 112
16     | 8 24 40 56 72 88 104 120
32     | 4 20 36 52 68 84 100 116
`
	if got := "\n" + a.Table(); got != want {
		t.Errorf("the table is %s, want %s", got, want)
	}
}

// Keys on the left alone, and the key 0 in the row of the shard that begins with it.
func TestTableOfExisting(t *testing.T) {
	a := allocate.New(spaceOf(t, "128"))
	if err := a.Add(keysOf(4, 8, 16, 32, 64)...); err != nil {
		t.Fatal(err)
	}
	const skewed = `
Shards | Key distribution
-------+-----------------
1      |
2      | 64
4      | 32
8      | 16
16     | 8
32     | 4
`
	if got := "\n" + a.Table(); got != skewed {
		t.Errorf("the table is %s, want %s", got, skewed)
	}
	a = allocate.New(spaceOf(t, "128"))
	if err := a.Add(keysOf(0, 32, 9, 57)...); err != nil {
		t.Fatal(err)
	}
	const existing = `
Shards | Key distribution
-------+-----------------
1      | 0
2      |
4      | 32
8      |
16     |
32     |
64     |
128    | 9 57
`
	if got := "\n" + a.Table(); got != existing {
		t.Errorf("the table is %s, want %s", got, existing)
	}
}

// At 128 bits the rows go on to the last key of all, in a table that stays straight.
func TestTableOfAll(t *testing.T) {
	var a allocate.Allocator
	if err := a.Add(keyspace.Key{Lo: 1}, keyspace.Max()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(a.Table(), "\n"), "\n")
	if len(lines) != 2+129 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		if len(line) < 41 || (line[40] != '|' && line[40] != '+') {
			t.Errorf("line %d has no bar in column 40: %s", i, line)
		}
	}
	if want := space.String() + " | 1 " + keyspace.Max().String(); lines[130] != want {
		t.Errorf("the last line is %s, want %s", lines[130], want)
	}
}
