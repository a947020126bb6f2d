package consumer

import (
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// figures are the numbers of one Run. It is safe for concurrent use, and calls nothing under its
// lock.
type figures struct {
	mu     sync.Mutex
	fleet  fleetFigures
	totals totals
	ended  bool // Run has returned
	holds  int64
	gone   []ShardStatus // of leases that were given up; only for CloudWatch

	// These belong to the coordinator: the stream's shards as of the last comparison with the
	// table.
	listed   []runnel.Shard
	listedAt time.Time
}

// fleetFigures are the numbers of the whole fleet, as of a look at the whole table.
type fleetFigures struct {
	leases, shards, unclaimed int
	watching                  bool
	at                        time.Time
}

// totals are a worker's numbers since its start, for all shards that it ever held.
type totals struct{ records, bytes, retries, throttles int64 }

// count notes an event.
func (f *figures) count(e *Event) {
	if e.Kind != EventDelivered {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.totals.records += int64(e.Records)
	f.totals.bytes += e.Bytes
}

// throttled notes a call that was over a limit.
func (r *run) throttled(shard runnel.ShardID) {
	for _, h := range r.holdings.some([]runnel.ShardID{shard}) {
		h.meter.throttled()
	}
	r.figures.mu.Lock()
	defer r.figures.mu.Unlock()
	r.figures.totals.throttles++
}

// retried notes a failed attempt at a shard's records, by the handler or the sink.
func (h *holding) retried() {
	h.retries.Add(1)
	f := &h.run.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.totals.retries++
}

// number returns the number of the next holding.
func (f *figures) number() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds++
	return f.holds
}

// giveUp keeps the counts of a lease that the worker no longer holds, until CloudWatch gets them.
func (h *holding) giveUp() {
	if h.run.cfg.CloudWatch == nil {
		return
	}
	s := h.status(time.Now())
	f := &h.run.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = append(f.gone, s)
}

// givenUp returns the leases that were given up since the last call.
func (f *figures) givenUp() []ShardStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := f.gone
	f.gone = nil
	return gone
}

// list keeps the stream's shards, as an audit has listed them.
func (f *figures) list(shards []runnel.Shard) { f.listed, f.listedAt = shards, time.Now() }

// looked counts the leases of a look at the whole table. An old list of the shards does not count,
// since the rows of shards that have ended since may be gone.
func (r *run) looked(now time.Time, leases []lease.Lease, skipped []lease.Skipped, v lease.View) {
	shards := lease.ShardView{Leases: leases}
	for _, s := range skipped {
		shards.Unreadable = append(shards.Unreadable, runnel.ShardID(s.Key))
	}
	seen := fleetFigures{
		leases: len(skipped), unclaimed: len(skipped), at: now,
	}
	for _, row := range v.Rows {
		if row.Ready != lease.Ended {
			seen.leases++
		}
		if row.Ready == lease.Readable && row.Owner == "" {
			seen.unclaimed++
		}
	}
	f := &r.figures
	seen.shards = seen.leases
	if now.Sub(f.listedAt) < 2*r.cfg.AuditInterval {
		shards.Shards = f.listed
		seen.shards += len(shards.Missing())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen.watching = f.fleet.watching
	f.fleet = seen
}

func (f *figures) watch(watching bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fleet.watching = watching
}

// end notes that Run has returned.
func (f *figures) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.fleet.watching = true, false
}

func (f *figures) state() (fleet fleetFigures, totals totals, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fleet, f.totals, f.ended
}
