package cli_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// readmeBlock is a fenced block of README.md.
type readmeBlock struct {
	line     int
	language string
	text     string
}

func readmeBlocks(t *testing.T) (blocks []readmeBlock) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var open *readmeBlock
	for n, line := range strings.SplitAfter(string(text), "\n") {
		language, fence := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
		switch {
		case fence && open == nil:
			open = &readmeBlock{line: n + 1, language: language}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return blocks
}

// TestReadmeBlocks wants each block of README.md to have a language. TestReadmeCommands runs sh,
// text is output, and package examples compares go with programs. There is no other.
func TestReadmeBlocks(t *testing.T) {
	counts := map[string]int{}
	for _, b := range readmeBlocks(t) {
		if !slices.Contains([]string{"sh", "text", "go"}, b.language) {
			t.Errorf("README.md, line %d: a block of %q; want sh, text or go", b.line, b.language)
		}
		counts[b.language]++
	}
	if counts["sh"] < 7 || counts["text"] < 3 {
		t.Errorf("README.md has only these blocks: %v", counts)
	}
}

// goWrapper is the go of README's commands: each is recognised, and done from the clone, or left
// out for a reason. Any other ends with 99.
const goWrapper = `#!/bin/bash
echo "go $*" >> "$README_LOG"
repository() { (cd "$README_REPOSITORY" && "$README_GO" "$@"); }
case "$*" in
"env GOPATH") exec "$README_GO" env GOPATH ;;
"run ./cmd/runnel demo") exec runnel demo --quiet --records 3000 ;; # of 100,000, which CI runs
"test ./...") ;;                # this test is a part of it, and CI runs all
"install ./cmd/runnel") ;;      # the test binary is runnel
"run ./examples/produce" | "run ./examples/consume -once")
	repository "$@" ;;
"run ./conformance --endpoint http://127.0.0.1:"*)
	repository "$@" --only '^(put-records|wire)/' ;; # of all facts, which its own tests ask
*) echo "README has a go command that its test does not know: go $*" >&2; exit 99 ;;
esac
`

// runnelWrapper is the runnel of README's commands: the test binary, with a free port in the place
// of 4567. It waits for a server that was started in the background.
const runnelWrapper = `#!/bin/bash
echo "runnel $*" >> "$README_LOG"
export RUNNEL_TEST_AS_COMMAND=1
command="$1"
shift
if [ "$command" = serve ]; then
	exec "$README_RUNNEL" serve --addr "127.0.0.1:$README_PORT" "$@"
fi
arguments=()
for argument in "$@"; do
	if [ "$argument" = --local ]; then
		argument="--endpoint=http://127.0.0.1:$README_PORT"
	fi
	arguments+=("$argument")
done
for ((try = 0; command != demo && try < 600; try++)); do
	if (exec 3<>"/dev/tcp/127.0.0.1/$README_PORT") 2>/dev/null; then
		break
	fi
	sleep 0.05
done
exec "$README_RUNNEL" "$command" "${arguments[@]}"
`

// sqliteWrapper is the sqlite3 of README's commands, which the machine may not have.
const sqliteWrapper = `#!/bin/bash
RUNNEL_TEST_SQL_FILE="$1" exec "$README_RUNNEL" "$2"
`

// TestReadmeCommands runs README's commands, word for word and in their order, in an empty folder.
// Each line of output in README must be printed; of the demo only the verdict, since its figures
// vary.
func TestReadmeCommands(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("README's commands are for a Unix shell")
	}
	gotool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder, bin := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go": goWrapper, "runnel": runnelWrapper, "sqlite3": sqliteWrapper,
	} {
		//nolint:gosec // programs
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	port, log := freePort(t), filepath.Join(bin, "log")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, bash, "-c", readmeScript(t, port))
	shell.Dir = folder
	shell.WaitDelay = 10 * time.Second
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "AWS_") {
			shell.Env = append(shell.Env, pair)
		}
	}
	shell.Env = append(shell.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"README_REPOSITORY="+repository, "README_GO="+gotool, "README_RUNNEL="+binary,
		"README_PORT="+port, "README_LOG="+log, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE="+filepath.Join(bin, "none"),
		"AWS_SHARED_CREDENTIALS_FILE="+filepath.Join(bin, "none"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("README's commands: %v\n%s", err, out)
	}
	compareReadme(t, string(out))
	ran, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"go run ./cmd/runnel demo", "go test ./...", "go install ./cmd/runnel", "go run ./examples/produce",
		"runnel serve", "runnel put", "runnel archive", "runnel verify", "go run ./conformance",
	} {
		if !strings.Contains(string(ran), command) {
			t.Errorf("README has no command %q any more: %s", command, ran)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// readmeScript is the sh blocks, one after another in one shell that ends at the first failure.
func readmeScript(t *testing.T, port string) string {
	var script strings.Builder
	script.WriteString("set -eo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n")
	for _, b := range readmeBlocks(t) {
		if b.language == "sh" {
			fmt.Fprintf(&script, "echo '@@ line %d'\n%s", b.line,
				strings.ReplaceAll(b.text, "127.0.0.1:4567", "127.0.0.1:"+port))
		}
	}
	script.WriteString("echo '@@ end'\n")
	return script.String()
}

var spaces = regexp.MustCompile(` +`)

// compareReadme looks for the lines of each text block in the output of the commands before it.
func compareReadme(t *testing.T, out string) {
	t.Helper()
	one := func(text string) string { return spaces.ReplaceAllString(text, " ") }
	before := ""
	for _, b := range readmeBlocks(t) {
		switch b.language {
		case "sh":
			_, rest, _ := strings.Cut(out, fmt.Sprintf("@@ line %d\n", b.line))
			before, _, _ = strings.Cut(rest, "@@ ")
		case "text":
			lines := strings.Split(strings.TrimSpace(b.text), "\n")
			if len(lines) > 5 {
				lines = lines[len(lines)-1:]
			}
			for _, line := range lines {
				if !strings.Contains(one(before), one(line)) {
					t.Errorf("README.md, line %d: %q is not in the output\n%s", b.line, line, before)
				}
			}
		}
	}
}

// README's text names the commands by which another module gets runnel.
func TestReadmeModule(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(string(module), "module "), "\n")
	for _, command := range []string{"go get " + path + "`", "go install " + path + "/cmd/runnel@latest`"} {
		if !strings.Contains(string(readme), "`"+command) {
			t.Errorf("README.md does not say `%s", command)
		}
	}
}
