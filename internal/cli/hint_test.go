package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
)

// Commands that try again log the remedy for a server that does not run, as others end with it.
func TestRetriesNameTheRemedy(t *testing.T) {
	const remedy = "no server listens at 127.0.0.1:1: start one, as runnel serve, or name another " +
		"with --endpoint"
	for _, command := range []string{
		"archive --once --to DIR/archive",
		"archive --once --to DIR/archive --log-format json",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := &untilLogged{cancel: func() { cancel(exit.ErrStop) }}
		args := strings.Fields(strings.ReplaceAll(command, "DIR", t.TempDir()))
		args = append(args, "--stream", "orders", "--endpoint", "http://127.0.0.1:1")
		_ = Main(ctx, args, Streams{In: strings.NewReader(""), Out: io.Discard, Err: errs})
		if !strings.Contains(errs.logged, remedy) {
			t.Errorf("%s: it logs %q, want %q in it", command, errs.logged, remedy)
		}
	}
}

// untilLogged is the standard error of a command that it cancels at the first warning.
type untilLogged struct {
	cancel func()

	mu     sync.Mutex
	logged string // the first warning
}

func (u *untilLogged) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.logged == "" && bytes.Contains(p, []byte("WARN")) {
		u.logged = string(p)
		u.cancel()
	}
	return len(p), nil
}
