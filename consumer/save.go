package consumer

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// saves is the progress of a keeper that stores a large state apart from the row.
type saves struct {
	stored runnel.Position // of the newest state that is stored; Start if none is
	large  bool            // the last state was too large for the row
	busy   bool            // a state is being stored
	next   time.Time       // the earliest time for the next one
}

// news reports whether the row must be written because it does not point to the stored state.
func (s *saves) news(row lease.Lease) bool {
	return s.large && s.stored != runnel.Start() && !row.StateApart()
}

// These limit the write units of large states to one a second and shard. A worker that dies leaves
// a state that is about as old as that, and the next one reads the records behind it again.
const (
	saveInterval = 30 * time.Second
	writeUnit    = 1 << 10 // bytes
)

func intervalOf(size int) time.Duration {
	return max(saveInterval, time.Duration((size+writeUnit-1)/writeUnit)*time.Second)
}

// addState adds the known filter's state to a checkpoint. A state that is too large for the row is
// returned. Until it is stored, the row has the last small one, or points to the one before.
func (k *keeper) addState(mark *lease.Mark) (large []byte) {
	if k.mu.known == nil || k.mu.stale {
		return nil
	}
	state, _ := k.mu.known.MarshalBinary() // it returns no error
	if k.mu.saves.large = len(state) > lease.MaxState; !k.mu.saves.large {
		mark.State = state
		return nil
	}
	mark.Apart = k.mu.saves.stored
	if mark.Apart == runnel.Start() && !k.states.usable() {
		mark.State = []byte{} // DynamoDB charges the whole row, also for a state that grows old
	}
	return state
}

// save stores the large state of a checkpoint that the row now has, when one is due. It removes the
// one that the row no longer points to, since the state has become small. It does not wait: a slow
// table must not delay a heartbeat.
func (k *keeper) save(ctx context.Context, e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.mu.saves
	if e.held.StateApart() && !k.held.StateApart() && !s.busy {
		s.busy, s.stored = true, runnel.Start()
		k.saving.Go(func() {
			k.states.remove(ctx, e.held)
			k.mu.Lock()
			defer k.mu.Unlock()
			s.busy = false
		})
	}
	if e.large == nil || s.busy || time.Now().Before(s.next) {
		return
	}
	s.busy, s.next = true, time.Now().Add(intervalOf(len(e.large)))
	k.saving.Go(func() {
		stored := k.states.put(ctx, e.held, e.mark.At, e.large)
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.busy = false; stored && k.mu.seeks == e.seeks {
			s.stored = e.mark.At // the next write to the row points to it
		}
	})
}

// saveLast stores the large state that belongs to the last write of a hand-over, before that write:
// the next worker may look for it at once. If the write then fails, the state may lie beyond the
// checkpoint and is void. It tries once, since the shard is silent meanwhile.
//
// A save before it has the counter of an earlier write. So if that save is done late, it cannot
// replace this state.
func (k *keeper) saveLast(ctx context.Context, ended bool) {
	k.mu.Lock()
	at, stored := k.mu.posted.End, k.mu.saves.stored
	k.mu.Unlock()
	if ended {
		at = runnel.End()
	} else if !at.Sequence.IsNumber() || at == stored {
		return
	}
	var mark lease.Mark
	k.mu.Lock()
	large := k.addState(&mark)
	k.mu.Unlock()
	if large == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.failover/8)
	defer cancel()
	if k.states.put(ctx, k.held, at, large) {
		k.mu.Lock()
		k.mu.saves.stored = at
		k.mu.Unlock()
	}
}
