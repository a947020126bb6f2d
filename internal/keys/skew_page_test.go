package keys_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// eventsFile has the events of the page.
const eventsFile = "gh-events-20150101.ndjson.gz"

var update = flag.Bool("update", false, "write docs/skew.md and docs/skew.svg")

// TestSkewPage compares docs/skew.md with the output of its commands, and the picture with the one
// that they draw.
func TestSkewPage(t *testing.T) {
	data := os.Getenv("RUNNEL_DATA")
	if data == "" {
		t.Skip("RUNNEL_DATA is not set: it names the folder of " + eventsFile)
	}
	events := filepath.Join(data, eventsFile)
	const page, picture = "../../docs/skew.md", "../../docs/skew.svg"
	drawn := filepath.Join(t.TempDir(), "skew.svg")
	paths := strings.NewReplacer("events.ndjson.gz", events, "skew.svg", drawn)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	blocks := regexp.MustCompile("(?s)```\n\\$ runnel (.*?)\n(.*?)```")
	want := blocks.ReplaceAllFunc(text, func(block []byte) []byte {
		commands++
		line := string(blocks.FindSubmatch(block)[1])
		status, out, errs := clitest.Run(t.Context(), strings.Fields(paths.Replace(line))...)
		if status != 0 {
			t.Fatalf("runnel %s: status %d, %s", line, status, errs)
		}
		return []byte("```\n$ runnel " + line + "\n" + out + "```")
	})
	if commands == 0 {
		t.Fatal("the page has no command")
	}
	svg, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{page: want, picture: svg} {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil { //nolint:gosec // a page for all
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, want) {
			t.Errorf("%s is not what the commands print; run this test with -update: %v", name, err)
		}
	}
}
