package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// prose is a command with words behind it that are set off by blanks alone: a shell takes them for
// arguments.
var prose = regexp.MustCompile(`^(runnel|aws|curl|go|docker) .*\S {3,}[^#\s]`)

// A block of the pages can be pasted into a shell: it runs commands, and stores no prose as names.
func TestPagesCanBePasted(t *testing.T) {
	blocks := 0
	err := filepath.WalkDir("../../docs", func(name string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		page, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		within, language := false, ""
		for n, line := range strings.Split(string(page), "\n") {
			if fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				if within, language = !within, fence; within {
					blocks++
				}
				continue
			}
			shell := language == "" || language == "sh"
			if within && shell && prose.MatchString(line) {
				t.Errorf("%s, line %d: put what is no command behind a #: %s", name, n+1, line)
			}
		}
		return nil
	})
	if err != nil || blocks < 10 {
		t.Errorf("%d blocks: %v", blocks, err)
	}
}
