package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// emptyData makes a data directory, which no server uses.
func emptyData(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := server.Open(t.Context(), server.Config{
		Dir: dir, Logger: quiet, Streams: []server.StreamSpec{{Name: "orders", Shards: 2}},
	})
	if err == nil {
		err = s.Close(context.WithoutCancel(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBackupInsideByALink follows symbolic links: a target behind one may be in the data directory.
func TestBackupInsideByALink(t *testing.T) {
	data := emptyData(t)
	link := filepath.Join(filepath.Dir(data), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Skipf("this system makes no symbolic link: %v", err)
	}
	for _, c := range [][2]string{
		{data, link + "/copy"},
		{link, data + "/copy"},
		{link, link + "/copy"},
		{data, link + "/wal/copy.tar.gz"},
		{data, link},
	} {
		_, err := server.Backup(t.Context(), c[0], c[1])
		if !errors.Is(err, server.ErrTargetInside) {
			t.Errorf("a backup of %s to %s: %v", c[0], c[1], err)
		}
	}
	if _, err := server.Backup(t.Context(), link, filepath.Dir(data)+"/copy"); err != nil {
		t.Error(err)
	}
}

// TestBackupKeepsForeignFiles puts files and folders at the name of the unfinished copy. A backup
// removes those of a killed backup, and refuses others.
func TestBackupKeepsForeignFiles(t *testing.T) {
	data := emptyData(t)
	for _, c := range []struct {
		to, file, text string
		want           error
	}{
		{to: "a", file: "a.incomplete/wal/000000000001.wal"},
		{to: "b", file: "b.incomplete/snapshot-00000000000000000144"},
		{to: "c.tar.gz", file: "c.tar.gz.incomplete"},
		{to: "d.tar.zst", file: "d.tar.zst.incomplete", text: "\x28\xb5\x2f\xfd..."},
		{"e", "e.incomplete/thesis.txt", "", server.ErrTargetExists},
		{"f", "f.incomplete", "a thesis", server.ErrTargetExists},
		{"g.tar.gz", "g.tar.gz.incomplete", "a thesis", server.ErrTargetExists},
		{"h.tar.gz", "h.tar.gz.incomplete/FORMAT", "6", server.ErrTargetExists},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := server.Backup(t.Context(), data, filepath.Join(dir, c.to))
		if !errors.Is(err, c.want) {
			t.Errorf("%s beside %s: %v, want %v", c.to, c.file, err, c.want)
		}
		if _, err := os.Stat(file); (err == nil) != (c.want != nil) {
			t.Errorf("%s beside %s: afterwards %v", c.to, c.file, err)
		}
	}
}

// TestTwoBackupsToOneTarget begins a second backup to the target of the first. The first one ends
// with an error: it must not publish the copy of the second, which is not complete yet.
func TestTwoBackupsToOneTarget(t *testing.T) {
	for _, name := range []string{"folder", "file.tar.gz"} {
		t.Run(name, func(t *testing.T) {
			data := emptyData(t)
			to := filepath.Join(t.TempDir(), name)
			hold, err := wal.Hold(vfs.OS{}, filepath.ToSlash(data)) // both wait for it
			if err != nil {
				t.Fatal(err)
			}
			first := backUp(t, data, to)
			made := awaitPart(t, to, nil)
			held, err := os.Open(to + ".incomplete") // else the next part may get its number
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			second := backUp(t, data, to)
			awaitPart(t, to, made)
			if err := hold.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-first; err == nil {
				t.Error("the first backup ended without an error")
			}
			if err := <-second; err != nil {
				t.Errorf("the second backup: %v", err)
			}
			if _, err := os.Stat(to); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(to + ".incomplete"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a part is left: %v", err)
			}
		})
	}
}

// backUp makes a backup on a goroutine of its own.
func backUp(t *testing.T, data, to string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := server.Backup(t.Context(), data, to)
		done <- err
	}()
	return done
}

// awaitPart waits for another unfinished copy than before, and returns it.
func awaitPart(t *testing.T, to string, before os.FileInfo) os.FileInfo {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		now, err := os.Stat(to + ".incomplete")
		if err == nil && (before == nil || !os.SameFile(now, before)) {
			return now
		}
		if time.Now().After(end) {
			t.Fatalf("no other copy has begun: %v", err)
		}
	}
}
