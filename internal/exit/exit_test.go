package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel/internal/exit"
)

// Status is the exit status of each kind of error, also of wrapped ones and of cobra's own.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{exit.No("lost"), 1},
		{exit.Usage("bad"), 2},
		{errors.New("cobra's own"), 2},
		{exit.Outside(errors.New("disk")), 3},
		{fmt.Errorf("put: %w", exit.Outside(errors.New("disk"))), 3},
		{context.Canceled, 130},
		{fmt.Errorf("page: %w", errors.Join(exit.ErrStop, errors.New("disk"))), 130},
		{exit.Interrupted("after %d lines", 3), 130},
		{exit.ErrInterrupt, 130},
	} {
		if got := exit.Status(c.err); got != c.want {
			t.Errorf("exit.Status(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}
