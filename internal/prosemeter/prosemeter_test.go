package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

const goSource = "package p // a comment\n" +
	"//go:generate directive\n" +
	"/* block\n   comment */\n" +
	"var a = \"a message of five words // no comment\"\n" +
	"var b = \"two words\"\n" +
	"var c = `one raw line of pattern`\n" +
	"var d = `first\nsecond line of help\n`\n"

// TestGoPassages checks the choice of comments and messages, with their lines.
func TestGoPassages(t *testing.T) {
	want := []passage{
		{1, " a comment"},
		{3, " block"},
		{4, "   comment "},
		{5, "a message of five words // no comment"},
		{9, "second line of help"},
	}
	if got := passages("p.go", []byte(goSource)); !slices.Equal(got, want) {
		t.Errorf("passages: %+v, want %+v", got, want)
	}
	if got := passages("p_test.go", []byte(goSource)); !slices.Equal(got, want[:3]) {
		t.Errorf("passages of a test: %+v, want the comments %+v", got, want[:3])
	}
}

// TestMarkdownPassages checks that code counts neither in words nor in hits.
func TestMarkdownPassages(t *testing.T) {
	text := "A `code what` page.\n```\nwho told\n```\nlast"
	want := []passage{{1, "A  page."}, {5, "last"}}
	if got := passages("p.md", []byte(text)); !slices.Equal(got, want) {
		t.Errorf("passages: %+v, want %+v", got, want)
	}
}

// TestMeasure gives each habit its own count, whatever the case; parts of words are no hits.
func TestMeasure(t *testing.T) {
	got := measure("What is left, that which no one told: it stands; Whose? whatever, retell, outstanding")
	if want := (count{words: 14, habits: [4]int{3, 1, 1, 1}}); got != want {
		t.Errorf("measure: %+v, want %+v", got, want)
	}
}

// TestReport checks both goals: the tree's, and each package's although the tree is below.
func TestReport(t *testing.T) {
	hits := func(n float64) count { return count{words: 1000, habits: [4]int{int(n)}} }
	for _, c := range []struct {
		name        string
		total, some count
		missed      bool
	}{
		{"at the goal", hits(goal), hits(goal), false},
		{"tree above", hits(goal + 1), hits(1), true},
		{"package above", hits(1), hits(5), true},
		{"one hit in a short package", hits(1), count{words: 100, habits: [4]int{1}}, false},
		{"no words", count{}, count{}, false},
	} {
		var out bytes.Buffer
		err := report(&out, c.total, map[string]count{"some": c.some}, false)
		if errors.Is(err, errAboveGoal) != c.missed {
			t.Errorf("%s: %v", c.name, err)
		}
		if named := strings.Contains(out.String(), "some"); named != (c.some.hits() > 2) {
			t.Errorf("%s: package named is %v:\n%s", c.name, named, &out)
		}
	}
}

// TestRunMeasuresTrackedFiles runs the command on its own package.
func TestRunMeasuresTrackedFiles(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, nil, true, false); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "clause 0.") {
		t.Errorf("no figure: %s", &out)
	}
}
