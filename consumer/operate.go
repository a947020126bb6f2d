package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/lease"
)

var (
	// ErrNotHeld is returned by an operation on a shard whose lease this worker does not hold.
	ErrNotHeld = errors.New("this worker does not hold the shard's lease")
	// ErrNoRoom is returned by Worker.Release if no other worker can take the lease.
	ErrNoRoom = errors.New("no other worker lives that has room for the lease")

	errOvertaken  = errors.New("another seek came behind it, or the lease is no longer held")
	errHandedOver = fmt.Errorf("the shard has ended or is being handed over: %w", ErrNotHeld)
)

// holdings are the shards that a worker holds, for the operations on them. It is safe for
// concurrent use.
type holdings struct {
	mu sync.Mutex
	of map[runnel.ShardID]*holding
}

func (h *holdings) add(held *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[runnel.ShardID]*holding{}
	}
	h.of[held.first.Key] = held
}

func (h *holdings) remove(shard runnel.ShardID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, shard)
}

// some returns the holdings of these shards, those that are held; without any, all.
func (h *holdings) some(shards []runnel.ShardID) []*holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []*holding
	for id, held := range h.of {
		if len(shards) == 0 || slices.Contains(shards, id) {
			found = append(found, held)
		}
	}
	return found
}

func (w *Worker) holding(shard runnel.ShardID) (*holding, error) {
	if r := w.current.Load(); r != nil {
		if found := r.holdings.some([]runnel.ShardID{shard}); len(found) > 0 {
			return found[0], nil
		}
	}
	return nil, fmt.Errorf("consumer: shard %s: %w", shard, ErrNotHeld)
}

func (w *Worker) each(shards []runnel.ShardID, do func(*control)) {
	if r := w.current.Load(); r != nil {
		for _, h := range r.holdings.some(shards) {
			do(&h.control)
		}
	}
}

// Pause hands out no further record of these shards, or, without any, of all that the worker holds
// now, until Resume. A handler that runs goes on to its return. The worker keeps the leases, and
// its pauses end with them. A pause by lease.Table.Pause stays with the row.
// Shards that the worker does not hold are left out. It does not wait, so a handler may call it.
func (w *Worker) Pause(shards ...runnel.ShardID) { w.each(shards, (*control).pause) }

// Resume ends the pauses of these shards, or, without any, of all that the worker holds, and tries
// anew those that the ErrorPolicy has stopped. A pause in the lease row goes on: lease.Table.Resume
// ends it. It does not wait, so a handler may call it.
func (w *Worker) Resume(shards ...runnel.ShardID) { w.each(shards, (*control).resume) }

// Seek goes to another position of a shard that the worker holds: the record behind to comes next.
// to is the position of a record, or runnel.Start for the oldest one. The context of the handler's
// running call ends, and the call's result does not count. The worker forgets the units so far.
// When Seek returns nil, the lease row has the position. It does not wait for the handler, so a
// handler may call it, with its own context, too. Config.OnEvent must not.
//
// It returns ErrNotHeld for a shard that the worker does not hold, and an error for another shard's
// position, or with a Sink, which keeps the position itself.
func (w *Worker) Seek(ctx context.Context, shard runnel.ShardID, to runnel.Position) error {
	if err := w.seek(ctx, shard, to); err != nil {
		return fmt.Errorf("consumer: seek %s: %w", shard, err)
	}
	return nil
}

func (w *Worker) seek(ctx context.Context, shard runnel.ShardID, to runnel.Position) error {
	if w.cfg.Sink != nil {
		return errors.New("a Sink keeps the position of its shards itself")
	}
	if to != runnel.Start() && !to.IsRecord() {
		return fmt.Errorf("the position is %s: want that of a record, or runnel.Start", to)
	}
	h, err := w.holding(shard)
	if err != nil {
		return ErrNotHeld
	}
	if to != runnel.Start() {
		calling, cancel := context.WithTimeout(ctx, w.cfg.CallTimeout)
		defer cancel()
		err := pages.CheckOwner(calling, w.cfg.Kinesis, w.cfg.Stream, shard, to)
		if err != nil {
			return err
		}
	}
	var asked *rewind
	err = h.control.seek(to, func() { asked = h.keeper.seek(to, h.run.began()) })
	if err != nil {
		return err
	}
	err = h.keeper.sought(ctx, asked)
	if errors.Is(err, errSought) { // ctx is that of a handler of this shard
		err = h.keeper.sought(context.WithoutCancel(ctx), asked)
	}
	if errors.Is(err, errVoid) {
		err = errOvertaken
	}
	return err
}

// Release passes the lease of a shard to another worker of the fleet, the one with the fewest, and
// the plan leaves it there. It returns ErrNotHeld for a shard that the worker does not hold, and
// ErrNoRoom if there is no worker for it. When it returns nil, the shard's handler finishes the
// work in hand; Release does not wait for that, so a handler may call it. Config.OnEvent must not.
func (w *Worker) Release(ctx context.Context, shard runnel.ShardID) error {
	h, err := w.holding(shard)
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	select {
	case h.run.requests <- func(life context.Context) { answer <- h.run.fleet.release(life, h) }:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.run.stopping:
		return fmt.Errorf("consumer: release %s: %w", shard, errHandedOver)
	}
	if err := <-answer; err != nil {
		return fmt.Errorf("consumer: release %s: %w", shard, err)
	}
	return nil
}

// release passes a lease to the worker that has the fewest.
func (f *fleet) release(life context.Context, h *holding) error {
	ctx, cancel := context.WithTimeout(life, f.run.cfg.Failover/4)
	defer cancel()
	leases, _, err := f.run.table.List(ctx)
	if err != nil {
		return err
	}
	if h.isStopping() {
		return errHandedOver
	}
	now := time.Now()
	f.watch.Update(now, leases)
	view := f.watch.View(now, f.run.cfg.Failover)
	watchers := view.Watchers(nil)
	held := map[string]int{}
	for _, row := range view.Rows {
		if row.Ready != lease.Ended {
			held[row.Owner]++
		}
	}
	others := slices.DeleteFunc(view.Members, func(m lease.Member) bool {
		full := m.MaxLeases > 0 && held[m.Name] >= m.MaxLeases
		return m.Name == f.run.cfg.WorkerID || m.Java || m.Leaving || full ||
			!f.watch.Alive(m.Name) || !f.reaches(m.Name, watchers)
	})
	if len(others) == 0 {
		return ErrNoRoom
	}
	to := slices.MinFunc(others, func(a, b lease.Member) int {
		return cmp.Or(cmp.Compare(held[a.Name], held[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	h.depart(departure{to: to.Name, byHand: true})
	return nil
}
