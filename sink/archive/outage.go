package archive

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// outages are the waits of a writer whose store cannot be reached.
var outages = retry.Backoff{Min: 250 * time.Millisecond, Max: 15 * time.Second}

// Outage is a failed call of a writer that waits: for its store, or after an error of Map.
type Outage struct {
	Name  string        // the object's; for Map, the shard's folder
	Err   error         // why the call failed; that of a store wraps ErrStoreUnavailable
	Since time.Time     // when the first such call failed
	Pause time.Duration // until the next one
}

// persist calls the store until it can be reached or the context ends. The object is the same each
// time, so it makes no difference which of the calls has arrived.
func (w *writer) persist(ctx context.Context, name string, call func() error) error {
	unavailable := func(err error) bool { return errors.Is(err, ErrStoreUnavailable) }
	return w.repeat(ctx, name, unavailable, call)
}

// repeat makes a call until its error is none that may pass, or the context ends.
func (w *writer) repeat(
	ctx context.Context, name string, passes func(error) bool, call func() error,
) error {
	var since time.Time
	for failures := 1; ; failures++ {
		err := call()
		if err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		if since.IsZero() {
			since = w.now()
		}
		pause := outages.After(failures)
		if w.cfg.OnOutage != nil {
			w.cfg.OnOutage(Outage{Name: name, Err: err, Since: since, Pause: pause})
		}
		if retry.Wait(ctx, pause) != nil {
			return err
		}
	}
}
