package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/producer"
)

func TestPutBar(t *testing.T) {
	input := &inputBytes{total: 64 << 20}
	input.read.Store(16 << 20)
	want := strings.Repeat("━", 7) + strings.Repeat("─", 23) +
		"  25 % of 64.0 MiB, 8.0 MiB/s, 6s left"
	if got := putBar(input, 2*time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	input.total = 0 // as with standard input
	if got := putBar(input, 2*time.Second); got != "read 16.0 MiB, 8.0 MiB/s" {
		t.Errorf("%q", got)
	}
	stats := producer.Stats{
		Delivered: 12_000, Calls: 40, Buffered: 7, Retried: 3, Unknown: 2,
		OldestAge: 1500 * time.Millisecond,
	}
	want = "put 12,000 records, 6,000/s, 40 calls, 7 waiting, the oldest 1.5 s, 3 retried, 2 unknown"
	if got := putLine(stats, 2*time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is read of files is counted in their bytes on the disk, and their sizes are known before.
func TestInputBytes(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for _, name := range []string{"a", "b"} {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(names[len(names)-1], []byte("{\"id\":1}\n\n{\"id\":2}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	format, err := newInputFormat("ndjson", "id")
	if err != nil {
		t.Fatal(err)
	}
	format.bytes.measure(names)
	err = format.read(t.Context(), names, func(inputLine) error { return context.Cause(t.Context()) })
	if read := format.bytes.read.Load(); read != 38 || format.bytes.total != 38 || err != nil {
		t.Errorf("%d of %d bytes, %v", read, format.bytes.total, err)
	}
	for _, unknown := range []string{"-", dir, filepath.Join(dir, "c")} {
		if format.bytes.measure(append(names, unknown)); format.bytes.total != 0 {
			t.Errorf("the size of %s is known: %d", unknown, format.bytes.total)
		}
	}
}
