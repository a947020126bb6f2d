package keytable

import (
	"errors"
	"fmt"
	"testing"
)

// A table that cannot be used is not tried again; an outage is.
func TestRetryable(t *testing.T) {
	for _, lasting := range []error{ErrDamagedTable, fmt.Errorf("open: %w", ErrUnusableTable)} {
		if retryable(lasting) {
			t.Errorf("%v is tried again", lasting)
		}
	}
	if !retryable(errors.New("connection reset")) {
		t.Error("an outage is not tried again")
	}
}
