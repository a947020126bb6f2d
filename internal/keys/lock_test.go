package keys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/vfs"
)

// While one command holds the file, another one changes nothing, and may be run again.
func TestKeyFileIsHeldByOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys.ndjson")
	held, err := (vfs.OS{}).Lock(filepath.ToSlash(name) + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	run := func() (int, string) {
		status, _, errs := clitest.Run(t.Context(), "keys", "map", "--file", name, "alice")
		return status, errs
	}
	if status, said := run(); status != exit.StatusOutside || !strings.Contains(said, "locked by another") {
		t.Errorf("status %d: %s", status, said)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the file was made")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if status, said := run(); status != exit.StatusOK {
		t.Errorf("status %d: %s", status, said)
	}
}
