package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReadmeFigures compares the numbers of facts in README.md with the suite's.
func TestReadmeFigures(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0 // by the command of README.md, at a server that checks no signatures
	for _, f := range facts() {
		if f.needs&(patience|signatures) != 0 {
			skipped++
		}
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		fmt.Sprintf("lists %d facts about the API", len(facts())),
		fmt.Sprintf("differs in %d of them by decision", len(known)),
		fmt.Sprintf("skips %d facts that take minutes", skipped),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("README.md does not say that the suite %q", want)
		}
	}
}
