package runnel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// maxMethods is the most methods of a type. A type with more does the work of several: cut it
	// by responsibility.
	maxMethods = 60
	// coordinatorMethods is the number of methods from which on a type counts as a coordinator.
	coordinatorMethods = 5
)

// manyMethods are the types that may have more, with the reason.
var manyMethods = map[string]string{
	"conformance.check": "an assertion kit: each method is one assertion of the suite",
}

// embedders are the structs that may embed a coordinator of their own package, with the reason.
var embedders = map[string]string{
	"conformance.check *kit": "an assertion kit that extends another one",
}

// TestMethodsOfTypes counts the methods of every type, tests left out.
func TestMethodsOfTypes(t *testing.T) {
	types := typesOfTree(t)
	for name, found := range types {
		if _, exempt := manyMethods[name]; found.methods > maxMethods && !exempt {
			t.Errorf("%s has %d methods, more than %d: cut it by responsibility, and hand each "+
				"part what it needs", name, found.methods, maxMethods)
		}
	}
	for name, reason := range manyMethods {
		if types[name].methods <= maxMethods {
			t.Errorf("%s needs no exception any more (%q): remove it", name, reason)
		}
	}
}

// TestNoEmbeddedCoordinators checks that no struct embeds a pointer to a type of its own package
// with many methods. Such a struct was cut from that type in name only: it can still do everything.
func TestNoEmbeddedCoordinators(t *testing.T) {
	types, needed := typesOfTree(t), map[string]bool{}
	for name, found := range types {
		dir := name[:strings.LastIndex(name, ".")]
		for _, embedded := range found.embeds {
			of, key := types[dir+"."+embedded], name+" *"+embedded
			if of.methods < coordinatorMethods {
				continue
			}
			needed[key] = true
			if _, exempt := embedders[key]; !exempt {
				t.Errorf("%s embeds *%s, which has %d methods: give it a name, or hand down what "+
					"is needed of it", name, embedded, of.methods)
			}
		}
	}
	for key, reason := range embedders {
		if !needed[key] {
			t.Errorf("%s needs no exception any more (%q): remove it", key, reason)
		}
	}
}

// typeSize is the size of a type.
type typeSize struct {
	methods int
	embeds  []string // the types of its package to which it embeds pointers
}

// typesOfTree returns the types that have methods or embed pointers, as "folder.Type", tests left
// out.
func typesOfTree(t *testing.T) map[string]typeSize {
	t.Helper()
	types := map[string]typeSize{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."),
			entry.IsDir() && entry.Name() == "node_modules":
			return filepath.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					of := dir + "." + typeNameOf(n.Recv.List[0].Type)
					found := types[of]
					found.methods++
					types[of] = found
				}
			case *ast.TypeSpec:
				of := dir + "." + n.Name.Name
				found := types[of]
				found.embeds = append(found.embeds, embedsOf(n.Type)...)
				types[of] = found
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// typeNameOf returns the name of a receiver's type, without pointer and type parameters.
func typeNameOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return typeNameOf(e.X)
	case *ast.IndexExpr:
		return typeNameOf(e.X)
	case *ast.IndexListExpr:
		return typeNameOf(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// embedsOf returns the types of the same package to which a struct embeds pointers.
func embedsOf(expr ast.Expr) (names []string) {
	s, ok := expr.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range s.Fields.List {
		pointer, ok := field.Type.(*ast.StarExpr)
		if !ok || len(field.Names) > 0 {
			continue
		}
		if name := typeNameOf(pointer.X); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
