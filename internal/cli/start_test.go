package cli_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// TestStartIsSmall checks that no package of this module allocates much before main. Every start of
// a command pays for that, also of a command that never uses the package: a page fault for each 4
// KiB, and then the memory of an idle server. A regular expression with {1,128} takes 100 KiB.
func TestStartIsSmall(t *testing.T) {
	t.Parallel()
	const most = 40 << 10 // bytes of one package
	const mostOfAll = 128 << 10
	process := clitest.Command("version")
	process.Env = append(process.Env, "GODEBUG=inittrace=1")
	var said bytes.Buffer
	process.Stderr = &said
	if err := process.Run(); err != nil {
		t.Fatal(err)
	}
	packages, all := 0, 0
	for line := range strings.Lines(said.String()) {
		// init PATH @0.1 ms, 0.01 ms clock, 64 bytes, 2 allocs
		words := strings.Fields(line)
		if len(words) != 11 || words[0] != "init" {
			continue
		}
		size, err := strconv.Atoi(words[7])
		if err != nil || words[8] != "bytes," {
			t.Fatalf("the line has another form: %s", line)
		}
		name, own := strings.CutPrefix(words[1], "github.com/runnel-stream/runnel/")
		if !own || strings.HasSuffix(name, "test") || strings.HasSuffix(name, "_test") {
			continue
		}
		packages++
		all += size
		if size > most {
			t.Errorf("%s allocates %d bytes before main: make them at the first use, by "+
				"sync.OnceValue", name, size)
		}
	}
	if packages < 10 {
		t.Fatalf("%d packages are in the trace:\n%s", packages, said.String())
	}
	if all > mostOfAll {
		t.Errorf("the packages allocate %d bytes before main, more than %d", all, mostOfAll)
	}
}

// TestStartCollectsNothing checks that the garbage collector does not run during a start, when all
// memory is in use. It would take two of some ten milliseconds.
func TestStartCollectsNothing(t *testing.T) {
	t.Parallel()
	process := clitest.Command("version")
	process.Env = append(process.Env, "GODEBUG=gctrace=1", "GOGC=")
	var said bytes.Buffer
	process.Stderr = &said
	if err := process.Run(); err != nil {
		t.Fatal(err)
	}
	if said.Len() > 0 {
		t.Errorf("collections:\n%s", said.String())
	}
}
