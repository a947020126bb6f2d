package cli

import (
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/lease"
)

// workerError returns the command's error for the error with which a worker of a fleet ended. doing
// says what the command did, and stream is the stream's name.
func workerError(doing, stream string, err error) error {
	switch {
	case errors.Is(err, consumer.ErrRecreated), errors.Is(err, lease.ErrTableNotFound),
		errors.Is(err, consumer.ErrReplaced):
		return exit.Outside(fmt.Errorf("%s: %w", doing, err))
	case errors.Is(err, lease.ErrOtherStream), errors.Is(err, lease.ErrManagedByKCL3),
		errors.Is(err, lease.ErrMultiStream), errors.Is(err, lease.ErrNotLeaseTable),
		errors.Is(err, lease.ErrOtherOutput), errors.Is(err, consumer.ErrOtherConsumer):
		return exit.Usage("%w", err)
	default:
		return exit.Outside(endpoint.Hint(fmt.Errorf("%s: %w", doing, err), stream))
	}
}
