package runnel_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// publicPackages returns the folders of the packages that users import, each with its files and
// its Examples.
func publicPackages(t *testing.T) map[string]*publicPackage {
	t.Helper()
	packages := map[string]*publicPackage{}
	for dir := range importsOfTree(t) {
		top, _, _ := strings.Cut(dir, "/")
		if slices.Contains(outside, top) || slices.Contains(strings.Split(dir, "/"), "internal") ||
			top == "cmd" {
			continue
		}
		packages[dir] = parsePublic(t, dir)
	}
	return packages
}

type publicPackage struct {
	fset     *token.FileSet
	files    []*ast.File
	examples int // that go test runs, or at least compiles
}

func parsePublic(t *testing.T, dir string) *publicPackage {
	t.Helper()
	p := &publicPackage{fset: token.NewFileSet()}
	entries, err := fs.Glob(os.DirFS("."), path.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range entries {
		file, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			p.files = append(p.files, file)
			continue
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
				p.examples++
			}
		}
	}
	return p
}

// TestPublicPackagesHaveExamples checks that each package that users import shows its use. A
// package without a user belongs below internal.
func TestPublicPackagesHaveExamples(t *testing.T) {
	packages := publicPackages(t)
	total := 0
	for dir, p := range packages {
		total += p.examples
		if p.examples == 0 {
			t.Errorf("%s has no Example: write one, or move it below internal", dir)
		}
	}
	if total < 20 || len(packages) < 15 {
		t.Errorf("%d Examples in %d packages: %s", total, len(packages),
			slices.Sorted(maps.Keys(packages)))
	}
}

// TestPublicNamesHaveComments checks that each exported name, field and method of the public
// packages has a comment: its own, one on its line, or that of its group.
func TestPublicNamesHaveComments(t *testing.T) {
	count := 0
	for _, p := range publicPackages(t) {
		for _, file := range p.files {
			for _, decl := range file.Decls {
				u := undocumented{fset: p.fset}
				u.decl(decl)
				for _, fault := range u.faults {
					t.Error(fault)
				}
				count += u.count
			}
		}
	}
	if count < 500 {
		t.Errorf("only %d names were found", count)
	}
}

// TestUndocumented shows which declarations fail.
func TestUndocumented(t *testing.T) {
	const source = `package p
func F() {}
type t struct{}
func (t) M() {}
type T struct {
	A, B int
	C int // has one

	// D and E have one.
	D int
	E int

	F int ` + "`json:\"f\"`" + `

	g int
}
func (T) String() string { return "" }
func (T) Error() string { return "" }
func (T) M() {}
// Both have one.
const (
	X = 1
	Y = 2
)
var Z = 3
type I interface {
	M()
	// N has one.
	N()
}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	u := undocumented{fset: fset}
	for _, decl := range file.Decls {
		u.decl(decl)
	}
	got := strings.Join(u.faults, " ")
	for _, name := range []string{"F", "T", "T.A", "T.B", "T.F", "T.M", "Z", "I", "I.M"} {
		if !strings.Contains(got, " "+name+" has no comment") {
			t.Errorf("%s is not reported:\n%s", name, got)
		}
	}
	if len(u.faults) != 9 {
		t.Errorf("%d faults:\n%s", len(u.faults), got)
	}
}

// undocumented collects the exported names without a comment.
type undocumented struct {
	fset   *token.FileSet
	faults []string
	count  int
}

func (u *undocumented) name(id *ast.Ident, prefix string, groups ...*ast.CommentGroup) {
	if !id.IsExported() {
		return
	}
	u.count++
	if !slices.ContainsFunc(groups, func(g *ast.CommentGroup) bool { return g.Text() != "" }) {
		u.faults = append(u.faults, fmt.Sprintf("%s: %s%s has no comment",
			u.fset.Position(id.Pos()), prefix, id.Name))
	}
}

func (u *undocumented) decl(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		receiver := ""
		if d.Recv != nil {
			receiver = receiverName(d.Recv.List[0].Type)
			if !ast.IsExported(receiver) || wellKnown(d.Name.Name) {
				return
			}
			receiver += "."
		}
		u.name(d.Name, receiver, d.Doc)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				u.name(s.Name, "", d.Doc, s.Doc, s.Comment)
				u.fields(s)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					u.name(id, "", d.Doc, s.Doc, s.Comment)
				}
			}
		}
	}
}

// fields checks the fields of a struct and the methods of an interface. A comment above a field
// also counts for the fields right below it, up to a blank line.
func (u *undocumented) fields(s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	var above *ast.CommentGroup
	last := 0
	for _, field := range list.List {
		line := u.fset.Position(field.Pos()).Line
		if field.Doc != nil || line > last+1 {
			above = field.Doc
		}
		last = u.fset.Position(field.End()).Line
		if callsAWS(field.Type) {
			continue
		}
		for _, id := range field.Names {
			u.name(id, s.Name.Name+".", above, field.Doc, field.Comment)
		}
	}
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// wellKnown are the methods whose meaning their interface gives.
func wellKnown(method string) bool {
	return slices.Contains([]string{"Error", "Unwrap", "Is", "String"}, method)
}

// callsAWS reports whether a method of an interface is one of the AWS SDK's clients, with its
// documentation there.
func callsAWS(t ast.Expr) bool {
	f, ok := t.(*ast.FuncType)
	if !ok || f.Params.NumFields() != 3 {
		return false
	}
	pointer, ok := f.Params.List[1].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	input, ok := pointer.X.(*ast.SelectorExpr)
	return ok && strings.HasSuffix(input.Sel.Name, "Input")
}
