package server_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// TestADataDirectoryThatIsGone: a server whose directory was renamed or replaced acknowledges
// nothing more, and says so.
func TestADataDirectoryThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	v := serve(t, server.Config{Dir: dir}, seam.OnFS(vfs.OS{}))
	put := func() int {
		code, _ := ask(v.Server, "Kinesis_20131202.PutRecord",
			map[string]any{"StreamName": "s", "PartitionKey": "k", "Data": ""})
		return code
	}
	if code := put(); code != http.StatusOK {
		t.Fatal(code)
	}
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, func() bool { return put() == http.StatusInternalServerError })
	code, text := v.health(t)
	if code != http.StatusServiceUnavailable || !strings.Contains(text, "gone") {
		t.Errorf("health: %d %s", code, text)
	}
}

// TestTheLockSurvivesItsFile: neither a server nor a check opens the directory of a running server
// after somebody has removed LOCK.
func TestTheLockSurvivesItsFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	serve(t, server.Config{Dir: dir})
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Check(t.Context(), dir); !errors.Is(err, server.ErrInUse) {
		t.Errorf("a check: %v", err)
	}
	other, err := server.Open(t.Context(), server.Config{Dir: dir, Logger: quiet})
	if !errors.Is(err, server.ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	if err == nil {
		_ = other.Close(t.Context())
	}
}
