package wal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestADirectoryThatIsGone: a log whose directory, or newest file, was removed takes no more writes,
// since its open files would take them and no start would find them.
func TestADirectoryThatIsGone(t *testing.T) {
	for name, remove := range map[string]func(disk *vfs.Mem) error{
		"renamed": func(disk *vfs.Mem) error { return disk.Rename("data", "other") },
		"replaced": func(disk *vfs.Mem) error {
			return errors.Join(disk.Rename("data", "other"), disk.MkdirAll("data/wal"))
		},
		"without its log": func(disk *vfs.Mem) error { return disk.Rename("data/wal", "other") },
		"without the newest file": func(disk *vfs.Mem) error {
			return disk.Remove("data/wal/000000000001.wal")
		},
	} {
		for _, idle := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, idle: %v", name, idle), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					disk := vfs.NewMem()
					b := start(t, config(disk))
					b.commit(t, 100, 0)
					time.Sleep(time.Hour)
					if err := b.Err(); err != nil {
						t.Fatal(err)
					}
					if err := remove(disk); err != nil {
						t.Fatal(err)
					}
					if idle {
						if err := b.Check(); !errors.Is(err, ErrGone) {
							t.Errorf("Check = %v", err)
						}
					} else if _, err := b.put(t.Context(), 1, 100); err != nil { // and then it looks
						t.Fatal(err)
					}
					time.Sleep(watchEvery)
					synctest.Wait()
					_, err := b.put(t.Context(), 2, 100)
					if !errors.Is(err, ErrGone) || !errors.As(err, new(*PoisonedError)) {
						t.Errorf("Sequence = %v", err)
					}
					if err := b.Err(); !errors.Is(err, ErrGone) ||
						strings.Contains(err.Error(), "is safe") {
						t.Errorf("Err = %v", err)
					}
					if err := b.Close(t.Context()); !errors.Is(err, ErrGone) {
						t.Errorf("Close = %v", err)
					}
				})
			})
		}
	}
}

// TestTheLockIsNotItsFile: a second log does not open the directory after the file LOCK was removed.
func TestTheLockIsNotItsFile(t *testing.T) {
	disk := vfs.NewMem()
	b := start(t, config(disk))
	if err := disk.Remove("data/LOCK"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(config(disk)); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second Open = %v", err)
	}
	b.stop(t)
}
