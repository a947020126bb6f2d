package input

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	read := &Bytes{total: 64 << 20}
	read.read.Store(16 << 20)
	want := strings.Repeat("━", 7) + strings.Repeat("─", 23) +
		"  25 % of 64.0 MiB, 8.0 MiB/s, 6s left"
	if got := read.Bar(2 * time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	read.total = 0 // as with standard input
	if got := read.Bar(2 * time.Second); got != "read 16.0 MiB, 8.0 MiB/s" {
		t.Errorf("%q", got)
	}
}

// Progress counts the bytes of the files on disk, and knows their sizes before the first read.
func TestInputBytes(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, name := range []string{"a", "b"} {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(names[len(names)-1], []byte("{\"id\":1}\n\n{\"id\":2}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	format, err := New(Fields{Format: "ndjson", Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	format.Bytes.Measure(names)
	err = format.Read(t.Context(), names, func(Line) error { return context.Cause(t.Context()) })
	if read := format.Bytes.read.Load(); read != 38 || format.Bytes.total != 38 || err != nil {
		t.Errorf("%d of %d bytes, %v", read, format.Bytes.total, err)
	}
	for _, unknown := range []string{"-", dir, filepath.Join(dir, "c")} {
		if format.Bytes.Measure(append(names, unknown)); format.Bytes.total != 0 {
			t.Errorf("the size of %s is known: %d", unknown, format.Bytes.total)
		}
	}
}
