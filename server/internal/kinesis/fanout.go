package kinesis

import (
	"errors"
	"sync"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// fanOut holds the running and recently ended subscriptions. The log's durable callbacks take its
// lock, so it is a leaf, except that a subscription's lock may be taken under it.
type fanOut struct {
	mu      sync.Mutex
	closed  bool
	slots   map[fanOutKey]*fanOutSlot
	streams map[catalogue.Key]map[*subscription]struct{} // under way
	shards  map[shardlog.ID]*shardFan                    // of those
	sweepAt int                                          // slots to be there before the old ones go
}

// fanOutKey identifies a subscription: a consumer and one of its stream's shards have at most one.
// The consumer's creation is part of the key, since names are used again.
type fanOutKey struct {
	stream          catalogue.Key
	streamCreated   int64 // ms since 1970
	consumer        string
	consumerCreated int64 // ms since 1970
	shard           uint32
}

// fanOutSlot is the last subscription of a consumer to a shard.
type fanOutSlot struct {
	began  int64         // elapsed ms
	holder *subscription // nil: it has ended
}

// takeoverAfter is the time after the start of a subscription, in ms, during which no new one can
// replace it, even if it has ended (AWS, "SubscribeToShard": "within 5 seconds of a successful
// call").
const takeoverAfter = 5000

// minSweptSlots is the number of slots below which no sweep runs.
const minSweptSlots = 256

// errClosing is returned to calls that come after Close.
var errClosing = errors.New("kinesis: the service is closed")

func newFanOut() *fanOut {
	return &fanOut{
		slots:   make(map[fanOutKey]*fanOutSlot),
		streams: make(map[catalogue.Key]map[*subscription]struct{}),
		shards:  make(map[shardlog.ID]*shardFan),
	}
}

// begin starts a subscription and ends the earlier one for the same consumer and shard. It returns
// an error if that one began less than 5 seconds ago.
func (f *fanOut) begin(u *subscription, now int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosing
	}
	if slot := f.slots[u.key]; slot != nil {
		if now-slot.began < takeoverAfter {
			return u.inUse()
		}
		if slot.holder != nil {
			slot.holder.signal(func(s *signals) { s.takenOver = true })
		}
	}
	f.sweep(now)
	f.slots[u.key] = &fanOutSlot{began: now, holder: u}
	if f.streams[u.key.stream] == nil {
		f.streams[u.key.stream] = make(map[*subscription]struct{})
	}
	f.streams[u.key.stream][u] = struct{}{}
	u.fan = f.shards[u.records.ID()]
	if u.fan == nil {
		u.fan = new(shardFan)
		f.shards[u.records.ID()] = u.fan
	}
	u.fan.subscribers.Add(1)
	return nil
}

// end removes a subscription.
func (f *fanOut) end(u *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slot := f.slots[u.key]; slot != nil && slot.holder == u {
		slot.holder = nil
	}
	delete(f.streams[u.key.stream], u)
	if len(f.streams[u.key.stream]) == 0 {
		delete(f.streams, u.key.stream)
	}
	if u.fan.subscribers.Add(-1) == 0 {
		delete(f.shards, u.records.ID())
	}
}

// sweep forgets the ended subscriptions that began five seconds ago or earlier. It runs each time
// that the slots have doubled, so that begin costs the same on average however many there are.
func (f *fanOut) sweep(now int64) {
	if len(f.slots) < f.sweepAt {
		return
	}
	for key, slot := range f.slots {
		if slot.holder == nil && now-slot.began >= takeoverAfter {
			delete(f.slots, key)
		}
	}
	f.sweepAt = max(minSweptSlots, 2*len(f.slots))
}

// changed signals a change of a stream to its subscriptions.
func (f *fanOut) changed(key catalogue.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u := range f.streams[key] {
		u.signal(func(s *signals) { s.changed = true })
	}
}

// close ends all subscriptions, and refuses new ones.
func (f *fanOut) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, subscriptions := range f.streams {
		for u := range subscriptions {
			u.signal(func(s *signals) { s.closing = true })
		}
	}
}

// inUse is AWS's text, to the second subscriber as well as to the first (seen live:
// awslabs/amazon-kinesis-client#391).
func (u *subscription) inUse() *wire.Error {
	return fail(codeInUse, "Another active subscription exists for this consumer: %s:%s:%s:%s",
		u.key.stream.World.Account, u.key.stream.Name, shardid.Of(u.key.shard), u.key.consumer)
}
