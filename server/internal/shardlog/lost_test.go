package shardlog

import (
	"bytes"
	"io"
	"log/slog"
	"path"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestAStartTellsOfALostEnd: a copy of the log that is older than the segments, as cp makes it of a
// running server's directory, starts with a warning. A whole copy starts without one.
func TestAStartTellsOfALostEnd(t *testing.T) {
	for name, stale := range map[string]bool{"an older log": true, "a whole copy": false} {
		t.Run(name, func(t *testing.T) {
			live, copied := vfs.NewMem(), vfs.NewMem()
			e := setup{fs: live}.mustOpen(t)
			ctx := t.Context()
			if err := e.do(ctx, opCreate, 1); err != nil {
				t.Fatal(err)
			}
			put := func(from, n int) {
				if _, err := e.append(ctx, 1, entries(1, from, n, 100)...); err != nil {
					t.Fatal(err)
				}
				e.drained(t)
			}
			put(0, 50)
			if err := e.log.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
			put(50, 20)
			copyInto(t, live, copied, "data")
			put(70, 100) // into further segments
			if stale {
				copyInto(t, live, copied, "data/shards")
			} else {
				copyInto(t, live, copied, "data")
			}
			e.mustClose(t)
			var told bytes.Buffer
			c := setup{fs: copied, logger: slog.New(slog.NewTextHandler(&told, nil))}.mustOpen(t)
			text := "acknowledged records are gone"
			if strings.Contains(told.String(), text) != stale {
				t.Errorf("the start says %q", told.String())
			}
			want := 170
			if stale {
				want = 70
			}
			c.want(t, 1, want)
			c.mustClose(t)
		})
	}
}

// copyInto copies the files of a folder and of the folders in it.
func copyInto(t *testing.T, from, to *vfs.Mem, dir string) {
	t.Helper()
	names, err := from.List(dir)
	if err == nil {
		err = to.MkdirAll(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name = path.Join(dir, name)
		if info, err := from.Stat(name); err == nil && info.IsDir() {
			copyInto(t, from, to, name)
			continue
		}
		in, err := from.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		size, err := in.Size()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.NewSectionReader(in, 0, size))
		if err != nil {
			t.Fatal(err)
		}
		out, err := to.Create(name)
		if err == nil {
			_, err = out.WriteAt(content, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
