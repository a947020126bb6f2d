package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// stuckInterval is the time between two reports of a handler that ignores its context.
const stuckInterval = 10 * time.Second

// watchCalls reports now and then a call of the handler that does not return, though the context of
// the session has ended. The caller ends it with the session.
func (h *holding) watchCalls(session context.Context) (end func()) {
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-session.Done():
		case <-over:
			return
		}
		for retry.WaitOr(context.WithoutCancel(session), stuckInterval, over) {
			h.reportStuck()
		}
	})
	return func() {
		close(over)
		watch.Wait()
	}
}

func (h *holding) reportStuck() {
	since, _ := h.calls.state()
	if since.IsZero() {
		return
	}
	h.run.cfg.Logger.Warn("the handler does not return, though its context has ended",
		"worker", h.run.cfg.WorkerID, "stream", h.run.cfg.Stream, "shard",
		string(h.first.Key), "since", since.UTC().Format(time.RFC3339))
	h.event(Event{Kind: EventHandlerStuck, Since: since})
}
