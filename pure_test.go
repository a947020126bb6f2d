package runnel_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPurePackages checks that the packages of hash keys import no package for I/O, goroutines or
// contexts. (Package plan imports time for a Duration; a Duration is no clock.)
func TestPurePackages(t *testing.T) {
	impure := regexp.MustCompile(`^(os|io|net|log|sync|context|syscall|runtime)(/|$)|^math/rand`)
	for _, dir := range []string{
		"keyspace", "keyspace/allocate", "keyspace/load", "keyspace/plan", "internal/chart",
	} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				if path, _ := strconv.Unquote(spec.Path.Value); impure.MatchString(path) {
					t.Errorf("%s imports %s: the package is pure", name, path)
				}
			}
		}
	}
}
