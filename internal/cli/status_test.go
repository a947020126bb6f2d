package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
)

// A file in the place of a data directory or an archive is bad input, not a failure of the disk.
func TestVerdictsOnAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"fsck", "verify"} {
		status := Main(t.Context(), []string{command, file}, Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		})
		if status != exit.StatusUsage {
			t.Errorf("%s: status %d", command, status)
		}
	}
}

// A command that cannot write its result ends with 3: it may have changed something before.
func TestResultsThatCannotBeWritten(t *testing.T) {
	for _, args := range []string{
		"version", "keys hash a", "keys nth --count 2 --output json", "verify " + t.TempDir(),
		"verify --output json " + t.TempDir(), "completion bash",
	} {
		var said strings.Builder
		status := Main(t.Context(), strings.Fields(args), Streams{
			In: strings.NewReader(""), Out: fullDisk{}, Err: &said,
		})
		if status != exit.StatusOutside || !strings.Contains(said.String(), "no space") ||
			strings.Contains(said.String(), "--help") {
			t.Errorf("%s: status %d, %s", args, status, said.String())
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
