package runnel_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a link of Markdown; group 1 is its target.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksOfPages checks that each link of a page to a file or a folder leads to one.
func TestLinksOfPages(t *testing.T) {
	linked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(withoutBlocks(string(text)), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			linked++
			if _, err := os.Stat(path.Join(path.Dir(page), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			}
		}
	}
	if linked < 50 {
		t.Errorf("the pages have %d links only", linked)
	}
}

// pages returns the pages for readers of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "bench/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// withoutBlocks removes the fenced blocks of a page.
func withoutBlocks(page string) string {
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
}

// TestContributingNamesSuites checks that CONTRIBUTING.md's table of CI names each suite that
// .ci/run runs.
func TestContributingNamesSuites(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| suite | minutes | contents |")
	table, _, _ = strings.Cut(table, "\n\n")
	suites := regexp.MustCompile(`(?m)^suite ['"]([^'"]+(?:'s[^"]*)?)['"]`).FindAllStringSubmatch(
		string(script), -1)
	if len(suites) < 9 {
		t.Errorf(".ci/run has %d suites only", len(suites))
	}
	for _, suite := range suites {
		if !strings.Contains(table, suite[1]) {
			t.Errorf("CONTRIBUTING.md does not name CI's suite %q", suite[1])
		}
	}
}
