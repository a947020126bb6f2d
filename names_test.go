package runnel_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/names.txt anew")

// namesFile lists the names that users' programs read: those of JSON, of metrics and of log keys.
const namesFile = "testdata/names.txt"

// TestNames compares the names in the code with the list. A name that changes breaks a user's
// program, so the list changes by -update alone, and the change shows in a diff.
func TestNames(t *testing.T) {
	got := namesOfTree(t)
	if *update {
		if err := os.WriteFile(namesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(namesFile)
	if err != nil {
		t.Fatal(err)
	}
	have, listed := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for _, name := range listed {
		if !slices.Contains(have, name) {
			t.Errorf("%s is gone; if that is meant: go test -run TestNames -update .", name)
		}
	}
	for _, name := range have {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is new: go test -run TestNames -update .", name)
		}
	}
}

// namesOfTree returns the names, a line each, in order.
func namesOfTree(t *testing.T) string {
	t.Helper()
	names := map[string]struct{}{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains(outside, name) || name != "." && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			for _, name := range namesOf(node) {
				names[name] = struct{}{}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n"
}

var (
	metricName = regexp.MustCompile(`^runnel_[a-z0-9_]+$`)
	logMethods = []string{"Debug", "Info", "Warn", "Error"}
)

// namesOf returns the names that a node of the code defines.
func namesOf(node ast.Node) (names []string) {
	switch n := node.(type) {
	case *ast.Field:
		if n.Tag == nil {
			return nil
		}
		tag, _ := strconv.Unquote(n.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, "json "+name)
		}
	case *ast.BasicLit:
		if text := textOf(n); metricName.MatchString(text) {
			names = append(names, "metric "+text)
		}
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(logMethods, method.Sel.Name) {
			return nil
		}
		if of, ok := method.X.(*ast.Ident); ok && of.Name == "http" { // http.Error
			return nil
		}
		for i := 1; i < len(n.Args); i += 2 {
			if key := textOf(n.Args[i]); key != "" {
				names = append(names, "log "+key)
			}
		}
	}
	return names
}

// textOf returns the value of a string literal; "" of anything else.
func textOf(node ast.Expr) string {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}
