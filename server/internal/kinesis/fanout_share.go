package kinesis

import (
	"sync/atomic"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// shardFan is the shared state of the subscriptions to one shard: the last event at its tip. An
// arriving record wakes them all, and the first one to read and encode it does so for all: twenty
// consumers then cost little more than one.
type shardFan struct {
	subscribers atomic.Int32
	last        atomic.Pointer[sharedEvent]
}

// sharedEvent is an event with the records [from, to), where to was the shard's tip. It never
// changes.
type sharedEvent struct {
	from, to uint64
	stream   *catalogue.Stream // as it was: its settings show in the records
	pending  bool              // records were on their way to the disk: the payload says so
	payload  []byte
	bytes    int // of data and partition keys
}

// maxShared is the longest shared payload. It bounds each shard's memory.
const maxShared = 256 << 10

// find returns the event, or nil.
func (f *shardFan) find(from, to uint64, st *catalogue.Stream, pending bool) *sharedEvent {
	e := f.last.Load()
	if e == nil || e.from != from || e.to != to || e.stream != st || e.pending != pending {
		return nil
	}
	return e
}

// shared reports whether the shard has more than one subscription.
func (f *shardFan) shared() bool { return f.subscribers.Load() > 1 }

// keep stores an event for the other subscriptions. The payload must not be changed afterwards.
func (f *shardFan) keep(e sharedEvent) {
	if len(e.payload) <= maxShared {
		f.last.Store(&e)
	}
}
