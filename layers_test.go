package runnel_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/runnel-stream/runnel"

// layers is the import policy, and so the architecture: a package imports only packages of
// the rows above its own. Siblings in a row are strangers. "." is package runnel itself.
var layers = [][]string{
	{
		"internal/origin",
	},
	{
		"internal/awsclient",
		"internal/awserr",
		"internal/bootclock",
		"internal/budget",
		"internal/cboritem",
		"internal/counttest",
		"internal/exit",

		"internal/javatest",
		"internal/localca",
		"internal/metricspage",
		"internal/ndjson",
		"internal/pgtest",
		"internal/prosemeter",
		"internal/retry",
		"internal/rows",
		"internal/s3test",
		"internal/shardid",
		"internal/spell",
		"internal/sqldb",
		"internal/startup",
		"internal/streamref",
		"internal/vfs",
		"keyspace",
		"server/internal/pipes",
	},
	{
		".",
		"internal/awscbor",
		"internal/console",
		"internal/dynamolocaltest",
		"internal/dynamotable",
		"internal/endpoint",
		"internal/fault",
		"internal/mongotest",
		"internal/usage",
		"keyspace/allocate",
		"keyspace/load",
		"server/internal/limit",
		"server/internal/memlimit",
		"server/internal/wal",
	},
	{
		"internal/chart",
		"internal/input",
		"internal/seam",
		"internal/shardmap",
		"keyspace/plan",
		"lease",
		"server/internal/shardlog",
		"sink",
	},
	{
		"aggregate",
		"internal/pages",
		"internal/wire",
		"lease/leasetest",
		"server/internal/pause",
		"server/internal/serverclock",
	},
	{
		"internal/fanout",
		"internal/opener",
		"internal/putlog",
		"keytable",
		"producer",
		"reshard",
		"server/internal/catalogue",
		"server/internal/cloudwatch",
		"server/internal/itemstore",
		"server/internal/transport",
		"sink/archive",
		"sink/sinktest",
		"sink/sqlsink",
	},
	{
		"consumer",
		"internal/follow",
		"internal/measure",
		"internal/rewind",
		"outbox",
		"proxy",
		"server/internal/dynamo",
		"server/internal/fsck",
		"server/internal/kinesis",
		"sink/archive/s3store",
		"sink/archive/table",
		"sink/sqlsink/pgxsink",
	},
	{
		"server/internal/backup",
	},
	{
		"internal/compare",
		"internal/demo",
		"internal/keys",
		"internal/workermetrics",
		"server",
		"sink/rollup",
	},
	{
		"sink/rollup/dynamostore",
		"sink/rollup/mongostore",
		"sink/rollup/rolluptest",
	},
	{
		"internal/cli",
		"runneltest",
	},
	{
		"cmd/runnel",
		"internal/cli/clitest",
	},
	{
		"internal/cli/processes",
	},
}

// The two halves meet only on the wire: nothing of one imports anything of the other. The server
// half is the folder server, the rest is the client half, and these belong to neither.
var (
	shared = []string{
		".", "keyspace", "keyspace/allocate", "keyspace/load", "keyspace/plan",
		"internal/bootclock", "internal/cboritem", "internal/spell", "internal/vfs", "internal/localca",
		"internal/fault", "internal/budget", "internal/origin", "internal/seam", "internal/shardid",
		"internal/wire",
	}
	bothHalves = []string{"runneltest", "internal/cli", "internal/cli/clitest", "cmd/runnel"}
)

func isServerHalf(dir string) bool { return dir == "server" || strings.HasPrefix(dir, "server/") }

func isClientHalf(dir string) bool {
	return !isServerHalf(dir) && !slices.Contains(shared, dir) && !slices.Contains(bothHalves, dir)
}

// outside are programs on top of the product: they use public packages only.
var outside = []string{"conformance", "bench", "interop", "examples"}

// TestLayers checks the imports of every file that is not a test, and that each package with a row
// is there.
func TestLayers(t *testing.T) {
	tree := importsOfTree(t)
	for _, dir := range slices.Concat(layers...) {
		if _, ok := tree[dir]; !ok {
			t.Errorf("%s has a row and is not there", dir)
		}
	}
	for dir, imports := range tree {
		for _, imported := range imports {
			if reason := forbidden(dir, imported); reason != "" {
				t.Errorf("%s imports %s: %s", dir, imported, reason)
			}
		}
	}
}

// TestBothHalves checks that exactly the packages of bothHalves import both halves, directly or
// through others, and that ARCHITECTURE.md names each of them.
func TestBothHalves(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	tree := importsOfTree(t)
	for _, dir := range slices.Concat(layers...) {
		below := map[string]bool{}
		addImports(tree, dir, below)
		server, client := false, false
		for imported := range below {
			server = server || isServerHalf(imported)
			client = client || isClientHalf(imported)
		}
		if listed := slices.Contains(bothHalves, dir); listed != (server && client) {
			t.Errorf("%s: in bothHalves is %v; it imports the server half: %v, the client half: %v",
				dir, listed, server, client)
		}
	}
	_, sentence, _ := strings.Cut(string(text), "packages hold both halves")
	sentence, _, _ = strings.Cut(sentence, ". ")
	for _, dir := range bothHalves {
		if !strings.Contains(sentence, "`"+dir+"`") {
			t.Errorf("ARCHITECTURE.md does not say that %s holds both halves", dir)
		}
	}
}

// addImports adds to below all packages that dir imports, directly or through others.
func addImports(tree map[string][]string, dir string, below map[string]bool) {
	for _, imported := range tree[dir] {
		if !below[imported] {
			below[imported] = true
			addImports(tree, imported, below)
		}
	}
}

// TestForbidden shows that the policy refuses what it must.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"server/internal/kinesis", "server/internal/shardlog", true},
		{"server/internal/kinesis", "producer", false}, // the other half
		{"producer", "server/internal/wal", false},     // the other half
		{"proxy", "server", false},                     // the other half
		{"proxy", "internal/wire", true},
		{"keyspace", "producer", false},      // upwards
		{"keyspace", "keyspace/load", false}, // upwards
		{"server/internal/kinesis", "keyspace/plan", true},
		{"reshard", "keyspace/plan", true},
		{"producer", "consumer", false}, // a sibling
		{"internal/cli", "server", true},
		{"internal/cli", "producer", true},
		{"examples/produce", "producer", true},
		{"examples/produce", "internal/cli", false},
		{"somewhere/new", "keyspace", false}, // no row
	} {
		if got := forbidden(c.from, c.to) == ""; got != c.allowed {
			t.Errorf("%s imports %s: allowed is %v, want %v", c.from, c.to, got, c.allowed)
		}
	}
}

func forbidden(from, to string) string {
	if top, _, _ := strings.Cut(from, "/"); slices.Contains(outside, top) {
		if strings.Contains(to, "internal/") && !strings.HasPrefix(to, top+"/internal/") {
			return "programs outside use public packages only"
		}
		return ""
	}
	fromRow, toRow := rowOf(from), rowOf(to)
	switch {
	case fromRow < 0 || toRow < 0:
		return "a package without a row: give it one in layers_test.go"
	case toRow >= fromRow:
		return "imports go down only, to the rows above"
	case isServerHalf(from) && isClientHalf(to), isClientHalf(from) && isServerHalf(to):
		return "the server half and the client half meet only on the wire"
	}
	return ""
}

func rowOf(dir string) int {
	return slices.IndexFunc(layers, func(row []string) bool { return slices.Contains(row, dir) })
}

// importsOfTree returns, for every folder with Go files, the module's own packages that its
// files import, tests left out.
func importsOfTree(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
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
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		if _, seen := imports[dir]; !seen {
			imports[dir] = nil
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported == module {
				imports[dir] = append(imports[dir], ".")
			} else if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
				imports[dir] = append(imports[dir], rest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// setters are the functions of internal/seam that change a process.
var setters = regexp.MustCompile(`seam\.(FromEnv|SetH)\(`)

// TestOnlyTestsUseTheSeam checks that no command can be given another H or a wrong clock.
func TestOnlyTestsUseTheSeam(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if call := setters.Find(text); call != nil {
			t.Errorf("%s calls %s, which is for tests alone", name, call)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestArchitecturePaths checks that every path that ARCHITECTURE.md names is there.
func TestArchitecturePaths(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-zA-Z0-9_.-]+(?:/[a-zA-Z0-9_.*-]+)+/?|[a-zA-Z0-9_-]+/|"+
		"[a-zA-Z0-9_.-]+\\.(?:go|md|yml))`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Fatalf("ARCHITECTURE.md names %d paths only", len(named))
	}
	for _, match := range named {
		if found, err := filepath.Glob(strings.TrimSuffix(match[1], "/")); err != nil || len(found) == 0 {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", match[1])
		}
	}
}

// TestFilesOfPackageComments checks that each Go file that a package's comment names is there. A
// name may be a pattern, as op_*.go.
func TestFilesOfPackageComments(t *testing.T) {
	named := 0
	for dir := range importsOfTree(t) {
		for name, comment := range packageComments(t, dir) {
			for _, file := range regexp.MustCompile(`[\w*]+\.go\b`).FindAllString(comment, -1) {
				named++
				if found, err := filepath.Glob(path.Join(dir, file)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there", name, file)
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("package comments name %d files only", named)
	}
}

// packageComments returns the package comments of a folder by file.
func packageComments(t *testing.T, dir string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	files, err := filepath.Glob(path.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil,
			parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil {
			comments[name] = file.Doc.Text()
		}
	}
	return comments
}

// TestTestsOfPages checks that each test that a page names is there, examples of code left out.
func TestTestsOfPages(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)`).FindAllStringSubmatch(
			string(text), -1) {
			there[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := withoutBlocks(string(text))
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(prose, -1) {
			if named++; !there[name] {
				t.Errorf("%s names %s, which is not there", page, name)
			}
		}
	}
	if named < 20 {
		t.Errorf("the pages name %d tests only", named)
	}
}
