package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// departure is where a shard goes when this worker stops reading it, although the worker goes on.
type departure struct {
	to     string // the worker that should have it; "" if none is known
	byHand bool   // a person moves it
}

// depart ends the reading of the shard politely: the handler or the sink finishes what it has, and
// then the lease is passed. The first call counts.
func (h *holding) depart(d departure) {
	h.leaving.Do(func() {
		h.to = d
		close(h.stopping)
	})
}

func (h *holding) isStopping() bool {
	select {
	case <-h.stopping:
		return true
	default:
		return false
	}
}

// errHandOver is the cause of a handler's cancelled context if a hand-over takes too long.
var errHandOver = errors.New("the time to hand the shard over is over")

// limit departs when the worker stops, and ends the reading if a departure takes too long.
func (h *holding) limit(
	ctx context.Context, cancel context.CancelCauseFunc, over <-chan struct{},
) {
	select {
	case <-over:
		return
	case <-h.run.stopping:
		h.depart(departure{}) // Config.ShutdownTimeout holds for the whole worker
		return
	case <-h.stopping:
	}
	if retry.WaitOr(ctx, h.run.cfg.HandOverTimeout, over) {
		h.event(Event{Kind: EventHandOverTimeout, Other: h.to.to})
		cancel(errHandOver)
	}
}

// cutShort reports whether the reading was ended because it took too long to stop. The lease is
// held all the same, so the commits before that are handed over.
func cutShort(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errShutdown) || errors.Is(cause, errHandOver)
}

// await waits until the reading has ended. It gives up a little after the time to stop is over:
// a handler that ignores its context must not hold the shard for ever.
func (h *holding) await(ctx context.Context, done <-chan struct{}) (returned bool) {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	if !cutShort(ctx) {
		<-done
		return true
	}
	grace, cancel := context.WithTimeout(
		context.WithoutCancel(ctx), min(h.run.cfg.Failover/8, time.Second))
	defer cancel()
	select {
	case <-done:
		return true
	case <-grace.Done():
		return false
	}
}

// successor returns the worker to which the lease is passed; none if it is released.
func (h *holding) successor(ctx context.Context, how ending) departure {
	if how != stopped && how != dropped || !h.isStopping() {
		return departure{}
	}
	if h.to.to == "" && h.run.isStopping() {
		return departure{to: h.run.successors.of(ctx, h.first.Key)}
	}
	return h.to
}

// handOver writes the last checkpoint and gives the lease up, or ends it. The keeper has stopped,
// so this goroutine now owns the row.
func (h *holding) handOver(ctx context.Context, how ending, to departure) ending {
	cause := context.Cause(ctx)
	if cutShort(ctx) {
		ctx, cause, how = context.WithoutCancel(ctx), nil, stopped
	}
	err := cause
	if cause == nil {
		err = h.keeper.settle(ctx, how == finished, h.lastWrite(how, to))
	}
	switch {
	case errors.Is(err, seam.ErrKilled):
		return dropped
	case err != nil:
		h.event(Event{Kind: EventLeaseLost, Err: err})
		h.deleted = errors.Is(err, lease.ErrRowDeleted)
		return dropped
	case how == finished:
		h.event(Event{Kind: EventShardEnded, Children: h.children})
		return how
	case how == caughtUp:
		h.event(Event{Kind: EventCaughtUp})
	}
	switch {
	case to.to != "":
		h.event(Event{Kind: EventLeasePassed, Other: to.to})
	case h.keeps(how):
		h.event(Event{Kind: EventLeaseKept})
	default:
		h.event(Event{Kind: EventLeaseReleased})
	}
	return how
}

// lastWrite returns the write with which the lease is given up.
func (h *holding) lastWrite(how ending, to departure) lastWrite {
	table := h.run.table
	switch {
	case how == finished:
		return func(ctx context.Context, l lease.Lease, m lease.Mark) (lease.Lease, error) {
			return table.Finish(ctx, l, m, h.children)
		}
	case to.to != "":
		return func(ctx context.Context, l lease.Lease, m lease.Mark) (lease.Lease, error) {
			return table.Pass(ctx, l, m, to.to, to.byHand)
		}
	case h.keeps(how):
		return func(ctx context.Context, l lease.Lease, m lease.Mark) (lease.Lease, error) {
			if m.IsZero() {
				return table.Renew(ctx, l)
			}
			return table.Checkpoint(ctx, l, m)
		}
	default:
		return table.Release
	}
}

// keeps reports whether the lease waits for the next process of a static worker.
func (h *holding) keeps(how ending) bool {
	return how == stopped && h.run.cfg.Static && h.run.isStopping()
}

// createChildren creates the leases of the shard's children, before its own row says SHARD_END. It
// tries until it succeeds or the lease is lost. A child that can be read once this row says
// SHARD_END is created with this worker as its owner, so that it need not wait to be found.
func (h *holding) createChildren(ctx context.Context, children []runnel.Shard) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := h.tryChildren(ctx, children)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			h.run.failed(h.first.Key, err)
		}
		retry.WaitOr(ctx, backoff(attempt, h.run.cfg.Failover/4), nil)
	}
}

var errNoChildren = errors.New("the shard has ended, and the stream lists no shard that came " +
	"from it")

func (h *holding) tryChildren(ctx context.Context, children []runnel.Shard) error {
	if len(children) == 0 { // the sink knew of the end, or the server named no children
		all, err := h.run.shards.Shards(ctx, 0)
		if err != nil {
			return err
		}
		children = shardmap.ChildrenOf(all, h.first.Key)
		if len(children) == 0 && !h.forgotten(all) {
			return errNoChildren
		}
	}
	h.children = nil
	if h.atEnd != nil {
		h.run.ends.leave(h.first.Key, h.atEnd, idsOf(children))
	}
	for _, child := range children {
		if err := h.createChild(ctx, child); err != nil {
			return err
		}
		h.children = append(h.children, child.ID)
	}
	return nil
}

func idsOf(shards []runnel.Shard) []runnel.ShardID {
	ids := make([]runnel.ShardID, len(shards))
	for i, s := range shards {
		ids[i] = s.ID
	}
	return ids
}

// forgotten reports whether the stream no longer lists the shard. Its children may then be gone as
// well, and the audit finds the ones that are left.
func (h *holding) forgotten(all []runnel.Shard) bool {
	for _, s := range all {
		if s.ID == h.first.Key {
			return false
		}
	}
	return len(all) > 0
}

func (h *holding) createChild(ctx context.Context, child runnel.Shard) error {
	startable := h.run.cfg.MaxLeases == 0 && !h.isStopping() && h.run.once.wants(child.ID)
	if startable {
		others := slices.DeleteFunc(slices.Clone(child.Parents), func(id runnel.ShardID) bool {
			return id == h.first.Key
		})
		var err error
		if startable, err = h.run.allEnded(ctx, others); err != nil {
			return fmt.Errorf("look at the other parent of %s: %w", child.ID, err)
		}
	}
	l := h.childLease(child)
	l.Complete = h.endComplete
	if startable {
		l.Owner, l.Static, l.Sink = h.run.cfg.WorkerID, h.run.static, h.run.cfg.Sink != nil
		l.Failover = h.run.cfg.Failover
	}
	sent := moment()
	stands, created, err := h.run.table.Create(ctx, l)
	if errors.Is(err, lease.ErrUnreadableRow) {
		h.run.reportRow(string(child.ID), err)
		return nil
	}
	if err != nil {
		return err
	}
	if !created && startable && stands.Owner == "" && !stands.Ended() {
		// The other parent's reader created it, when this shard was not finished yet.
		sent = moment()
		if stands, err = h.run.table.Take(ctx, stands, h.run.claim()); err == nil {
			created = true
		} else if !errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
	}
	if created && startable {
		h.adopted = append(h.adopted, adoption{lease: stands, sent: sent})
	}
	return nil
}

// childLease returns the lease of a child of the shard: from its first record on. If nothing of the
// shard has been processed, and its reading began at a time, then the shard may have ended before
// that time, and the child begins at it, too.
func (h *holding) childLease(child runnel.Shard) lease.Lease {
	origin := runnel.FromOldest()
	nothing := h.first.Processed() == runnel.Start() && h.keeper.lastPosted().End == runnel.Start()
	if nothing && h.first.Checkpoint.Sequence == runnel.AtTimestamp && !h.first.From.IsZero() {
		origin = runnel.FromTime(h.first.From)
	}
	l := lease.NewLease(child, origin)
	l.Origin, l.Output = &h.run.origin, h.run.output
	return l
}
