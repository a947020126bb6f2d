package runnel_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oneWay lists tasks that one package does for the client half, and the calls that show them.
// Copies would differ sooner or later.
var oneWay = []struct {
	what, dir string
	calls     *regexp.Regexp
}{
	{
		"reads of a shard", "internal/pages",
		regexp.MustCompile(`\.(GetShardIterator|GetRecords)\(`),
	},
}

// TestOneWay checks that no other package makes these calls. The server half executes them, and
// programs outside have no access to the package.
func TestOneWay(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		top, _, _ := strings.Cut(name, "/")
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") || isServerHalf(path.Dir(name)) ||
			slices.Contains(outside, top) {
			return err
		}
		text, err := os.ReadFile(name)
		for _, rule := range oneWay {
			switch {
			case !rule.calls.Match(text):
			case path.Dir(name) == rule.dir:
				found[rule.what] = true
			default:
				t.Errorf("%s calls %s: %s belong in %s", name, rule.calls.Find(text), rule.what, rule.dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range oneWay {
		if !found[rule.what] {
			t.Errorf("%s has no %s: the rule is out of date", rule.dir, rule.what)
		}
	}
}
