package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
)

// TestFileInterrupted: the lines of a plain file, of which there is always a next one, end with the
// context too.
func TestFileInterrupted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(name, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for read, lines := range map[string]func(context.Context, func()) error{
		"read": func(ctx context.Context, took func()) error {
			return Names().Read(ctx, []string{name}, func(Line) error { took(); return nil })
		},
		"eachLine": func(ctx context.Context, took func()) error {
			return EachLineOfFile(ctx, name, func(string) error { took(); return nil })
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		taken := 0
		err := lines(ctx, func() { taken++; cancel() })
		if taken != 1 || !errors.Is(err, exit.ErrInterrupt) {
			t.Errorf("%s: %d lines, %v", read, taken, err)
		}
	}
}
