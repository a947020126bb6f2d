package kinesis

import (
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

// throttle counts usage against a plan of limits. Calls use methods that take elapsed ms.
// No other lock is taken under its lock.
type throttle struct {
	plan *limit.Plan

	mu struct {
		sync.Mutex
		meters map[meterKey]*limit.Meter
		demand map[shardKey]*demand // of shards of on-demand streams
		hot    map[shardKey]bool    // those that are to be split
	}
	// wake has a token while hot is not empty.
	wake chan<- struct{}
}

// meterKey identifies one limit. Shards and consumers are those of one stream; its creation
// distinguishes streams of one name.
type meterKey struct {
	id       limit.ID
	world    wire.World
	stream   string // "": the account
	created  int64
	shard    uint32
	consumer string
}

// maxMeters bounds the memory. The next sweep removes a meter that counts nothing any more. If all
// of them still count, new keys are not limited.
const maxMeters = 1 << 17

func newThrottle(plan *limit.Plan, wake chan<- struct{}) *throttle {
	if plan == nil {
		return nil
	}
	t := &throttle{plan: plan, wake: wake}
	t.mu.meters = make(map[meterKey]*limit.Meter)
	t.mu.demand = make(map[shardKey]*demand)
	t.mu.hot = make(map[shardKey]bool)
	return t
}

// rate returns the limit for a stream; false: there is none.
func (t *throttle) rate(id limit.ID, stream string) (limit.Rate, bool) {
	value, limited := t.plan.Value(id, stream)
	return limit.Rate{Value: value, Window: id.Of().Window}, limited
}

// meter returns the key's meter, and makes a missing one; nil if there are too many. The caller
// holds the lock.
func (t *throttle) meter(key meterKey, now int64) *limit.Meter {
	m := t.mu.meters[key]
	if m != nil {
		return m
	}
	if len(t.mu.meters) >= maxMeters {
		t.sweepLocked(now)
		if len(t.mu.meters) >= maxMeters {
			return nil
		}
	}
	m = new(limit.Meter)
	t.mu.meters[key] = m
	return m
}

// take counts a call if the limit allows it.
func (t *throttle) take(key meterKey, now int64) bool {
	rate, limited := t.rate(key.id, key.stream)
	if !limited {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.meter(key, now)
	return m == nil || m.Take(rate, now, 1)
}

// giveBack undoes the last use of a limit with a window longer than a second: AWS counts
// "successfully" changed things there.
func (t *throttle) giveBack(key meterKey) {
	rate, limited := t.rate(key.id, key.stream)
	if !limited {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.mu.meters[key]; m != nil {
		m.Return(rate)
	}
}

// sweep removes the meters that count nothing any more, also those of deleted streams and shards.
func (t *throttle) sweep(now int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(now)
}

func (t *throttle) sweepLocked(now int64) {
	for key, m := range t.mu.meters {
		if rate, limited := t.rate(key.id, key.stream); !limited || m.Idle(rate, now) {
			delete(t.mu.meters, key)
		}
	}
	for key, d := range t.mu.demand {
		if now/1000 > d.second+1 {
			delete(t.mu.demand, key)
		}
	}
}

// ofShard is the key of one of a shard's limits.
func ofShard(id limit.ID, st *catalogue.Stream, sh *catalogue.Shard) meterKey {
	return meterKey{id: id, world: st.World, stream: st.Name, created: st.Created, shard: sh.Index}
}

// writes marks the entries above their shards' limits. It counts records one by one, in the
// request's order, so that the rest is stored, as AWS does.
func (t *throttle) writes(st *catalogue.Stream, p *putRequest, now int64) {
	size, sizeLimited := t.rate(limit.WriteBytes, st.Name)
	count, countLimited := t.rate(limit.WriteRecords, st.Name)
	if !sizeLimited && !countLimited {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var sh *catalogue.Shard
	var bytes, records *limit.Meter
	entries, results := p.entries, p.results
	for i := range entries {
		if results[i].code != "" {
			continue
		}
		if to := st.Route(p.hashes[i]); to != sh {
			sh = to
			bytes = t.meter(ofShard(limit.WriteBytes, st, sh), now)
			records = t.meter(ofShard(limit.WriteRecords, st, sh), now)
		}
		n := int64(entries[i].Size())
		if st.Mode == catalogue.ModeOnDemand {
			t.count(st, sh, now, n, size.Value, count.Value)
		}
		useBytes, useRecords := sizeLimited && bytes != nil, countLimited && records != nil
		if (useBytes && !bytes.Fits(size, now, n)) || (useRecords && !records.Fits(count, now, 1)) {
			results[i].code = codeThrottled // the message follows once the shard is known
			continue
		}
		if useBytes {
			bytes.Add(size, now, n)
		}
		if useRecords {
			records.Add(count, now, 1)
		}
	}
}

// mayRead counts a call of GetRecords unless the shard has had too many calls, or too many bytes.
func (t *throttle) mayRead(st *catalogue.Stream, sh *catalogue.Shard, now int64) bool {
	if rate, limited := t.rate(limit.ReadBytes, st.Name); limited {
		t.mu.Lock()
		m := t.meter(ofShard(limit.ReadBytes, st, sh), now)
		open := m == nil || m.Open(rate, now)
		t.mu.Unlock()
		if !open {
			return false
		}
	}
	return t.take(ofShard(limit.ReadCalls, st, sh), now)
}

// read counts the bytes that GetRecords returns.
func (t *throttle) read(st *catalogue.Stream, sh *catalogue.Shard, now int64, bytes int) {
	rate, limited := t.rate(limit.ReadBytes, st.Name)
	if !limited || bytes == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.meter(ofShard(limit.ReadBytes, st, sh), now); m != nil {
		m.Owe(rate, now, int64(bytes))
	}
}

// fanOut counts bytes of an event as sent to a consumer, and returns the wait before sending more.
func (t *throttle) fanOut(
	st *catalogue.Stream, sh *catalogue.Shard, consumer string, now int64, bytes int,
) time.Duration {
	rate, limited := t.rate(limit.FanOutBytes, st.Name)
	if !limited || bytes == 0 {
		return 0
	}
	key := ofShard(limit.FanOutBytes, st, sh)
	key.consumer = consumer
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.meter(key, now)
	if m == nil {
		return 0
	}
	return time.Duration(m.Pause(rate, now, int64(bytes))) * time.Millisecond
}
