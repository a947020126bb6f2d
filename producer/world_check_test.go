package producer

import (
	"errors"
	"slices"

	"github.com/runnel-stream/runnel/aggregate"
)

// delivered reads the stream as a consumer does, parents first: with the filter, and without it.
func (w *world) delivered() (filtered, raw map[laneKey][]uint64) {
	filtered, raw = map[laneKey][]uint64{}, map[laneKey][]uint64{}
	filters := map[*modelShard]*aggregate.Filter{}
	for _, s := range w.shards { // parents are before their children
		var parents []*aggregate.Filter
		for _, p := range s.parents {
			parents = append(parents, filters[p])
		}
		f := aggregate.Union(parents...)
		filters[s] = f
		slices.SortStableFunc(s.log, func(a, b modelRecord) int { return a.arrival.Compare(b.arrival) })
		for _, r := range s.log {
			var d aggregate.Decoder
			if !d.Open(r.data) {
				f.Advance(r.readers)
				filtered[r.key] = append(filtered[r.key], markIn(r.data))
				raw[r.key] = append(raw[r.key], markIn(r.data))
				continue
			}
			key := func(record aggregate.Record) laneKey {
				if w.limits.order.byShard() && r.key.partition == outerKey {
					return laneKey{record.PartitionKey, record.ExplicitHashKey}
				}
				return r.key
			}
			if d.Check(s.hashes) != nil && r.key.partition == outerKey {
				f.Advance(r.readers)
				continue
			}
			for _, record := range d.Records() {
				raw[key(record)] = append(raw[key(record)], markIn(record.Data))
			}
			for _, record := range f.Pass(&d, r.readers) {
				filtered[key(record)] = append(filtered[key(record)], markIn(record.Data))
			}
		}
		if f.Counts.Malformed+f.Counts.Unfiltered > 0 {
			w.Fatalf("the filter finds units malformed: %+v", f.Counts)
		}
	}
	return filtered, raw
}

// check compares the stream with the results.
func (w *world) check() {
	filtered, raw := w.delivered()
	if !w.unordered() {
		w.checkOrder(raw, false)
		w.checkOrder(filtered, w.limits.order.units())
	}
	doubles, unknown := 0, 0
	copies, rawCopies := count(filtered), count(raw)
	for mark := uint64(1); mark < uint64(len(w.records)); mark++ {
		r, n := w.ends[mark], copies[mark]
		least, most := 1, 1+r.Unknown
		if r.Err != nil {
			least, most = 0, r.Unknown
			if got := errors.Is(r.Err, ErrMaybeStored); got != (r.Unknown > 0) {
				w.Fatalf("record %d: %d unknown attempts, and %v", mark, r.Unknown, r.Err)
			}
		}
		if w.limits.order.units() && !aggregate.IsAggregate(w.records[mark].Data) {
			most = min(most, 1)
		}
		if n < least || n > most {
			w.Fatalf("record %d is delivered %d times, its result is %+v", mark, n, r)
		}
		if w.crashes == 1 && rawCopies[mark] > most && rawCopies[mark] > 1+r.Unknown {
			w.Fatalf("record %d is in the stream %d times, its result is %+v", mark, rawCopies[mark], r)
		}
		doubles += max(rawCopies[mark]-1, 0)
		unknown += r.Unknown
	}
	w.checkCounts(doubles, unknown)
}

// checkCounts compares the core's counts with the model's, and checks that the core is empty.
func (w *world) checkCounts(doubles, unknown int) {
	c := w.core
	if w.unknowns != int(c.ledger.counts.unknown) {
		w.Fatalf("%d attempts without an answer, the core counts %d", w.unknowns, c.ledger.counts.unknown)
	}
	if w.crashes == 1 && (doubles > w.unknowns || unknown > w.unknowns) {
		w.Fatalf("%d doubles, %d attempts without an answer, the results say %d", doubles, w.unknowns,
			unknown)
	}
	if len(c.lanes) != 0 || c.calls != 0 || c.flying != 0 || c.ledger.ages.oldest != nil ||
		c.ready.count != 0 || c.held.Len() != 0 || c.shards.parked != 0 ||
		len(c.toLookUp) != 0 || len(c.ledger.flushes) != 0 || w.numbersLeft() {
		w.Fatalf("something is left: %d lanes, %d calls, %d ready, %d held, %d blocked, %d parked, "+
			"%d to look up, %d flushes", len(c.lanes), c.calls, c.ready.count, c.held.Len(),
			c.groups.blocked+len(c.groups.stalled), c.shards.parked, len(c.toLookUp), len(c.ledger.flushes))
	}
	if len(w.journal) != 0 {
		w.Fatalf("%d units are open in the journal", len(w.journal))
	}
	if total := c.ledger.counts.delivered + c.ledger.counts.undelivered; total != c.ledger.taken {
		w.Fatalf("%d results counted for %d records", total, c.ledger.taken)
	}
}

// numbersLeft reports whether a group has an unsettled unit, or a lane that waits for a number.
func (w *world) numbersLeft() bool {
	g := &w.core.groups
	left := g.blocked != 0 || len(g.stalled) != 0
	for i := range g.each {
		left = left || g.each[i].oldest != nil || g.each[i].newest != nil ||
			g.each[i].blocked.Len() != 0
	}
	return left
}

// checkOrder compares first occurrences with the order of put: those of delivered records, or with
// all of every record that has an identity.
func (w *world) checkOrder(stream map[laneKey][]uint64, all bool) {
	for key, marks := range stream {
		newest, seen := uint64(0), map[uint64]bool{}
		for _, mark := range marks {
			skip := w.ends[mark].Err != nil
			if all {
				skip = aggregate.IsAggregate(w.records[mark].Data)
			}
			if skip || seen[mark] {
				continue
			}
			if seen[mark] = true; mark < newest {
				w.Fatalf("%v: record %d is first read after %d", key, mark, newest)
			}
			newest = mark
		}
	}
}

func count(stream map[laneKey][]uint64) map[uint64]int {
	copies := map[uint64]int{}
	for _, marks := range stream {
		for _, mark := range marks {
			copies[mark]++
		}
	}
	return copies
}

// checkGroup checks that the identity of a new unit is of the right group: the one of its lane's
// hash key, for the whole run and whatever the shards are, or in OrderNone any group of its shard.
func (w *world) checkGroup(l *lane) {
	named := l.unit.id.Producer
	group := named[15]
	if named[15] = 0; named != (aggregate.ProducerID{byte(w.crashes)}) || group > 15 {
		w.Fatalf("a unit of another run, %v, was never frozen", l.unit.id)
	}
	record := aggregate.Record{PartitionKey: l.key.partition, ExplicitHashKey: l.key.hash}
	if want := byte(record.Hash().Hi >> 60); group != want && !w.unordered() {
		w.Fatalf("a unit of lane %v is of the group %d, want %d", l.key, group, want)
	}
	if !w.unordered() {
		return
	}
	for _, s := range w.core.chart.open {
		if s.Range.Contains(record.Hash()) &&
			(group < byte(s.Range.Start.Hi>>60) || group > byte(s.Range.End.Hi>>60)) {
			w.Fatalf("a unit in shard %v is of the group %d", s, group)
		}
	}
}

// checkBlocked checks that a lane waits for a number only if its group has none for it: the numbers
// of the window are used, or there are ready lanes of the group for them.
func (w *world) checkBlocked() {
	type open struct{ lowest, highest, ready uint64 }
	groups := map[byte]open{}
	for key := range w.frozen {
		if run := key.producer; run[0] == byte(w.crashes) {
			g := groups[run[15]]
			g.highest = max(g.highest, key.number)
			groups[run[15]] = g
		}
	}
	for _, l := range w.core.lanes {
		w.openIn(l, func(u *unit) {
			if u.id.Producer[0] == byte(w.crashes) {
				g := groups[u.id.Producer[15]]
				if g.lowest == 0 || u.id.Number < g.lowest {
					g.lowest = u.id.Number
				}
				groups[u.id.Producer[15]] = g
			}
		})
	}
	for _, l := range w.core.lanes {
		if l.state == ready && !w.unordered() && !l.empty() {
			g := groups[byte(l.hashKey().Hi>>60)]
			g.ready++
			groups[byte(l.hashKey().Hi>>60)] = g
		}
	}
	for _, l := range w.core.lanes {
		if l.state != blocked || w.unordered() || l.empty() {
			continue
		}
		g := groups[byte(l.hashKey().Hi>>60)]
		if g.lowest == 0 {
			g.lowest = g.highest + 1
		}
		if g.lowest+w.limits.window > g.highest+g.ready {
			w.Fatalf("lane %v waits for a number, and its group has %+v with a window of %d",
				l.key, g, w.limits.window)
		}
	}
}

// openIn calls f for each unit of a lane that has an identity and is not settled.
func (*world) openIn(l *lane, f func(*unit)) {
	if l.unit.first != nil && l.unit.wrapped() {
		f(&l.unit)
	}
	for i := range l.resumed {
		f(&l.resumed[i])
	}
}
