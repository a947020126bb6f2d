package aggregate_test

import (
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
)

// judge is a filter or a control in its place.
type judge interface {
	pass(d *aggregate.Decoder, arrival time.Time) iter.Seq2[int, aggregate.Record]
}

// reader reads a world's shards, parents before children.
type reader struct {
	w *world
	// begin makes a shard's first state from its parents' last ones.
	begin func(parents []judge) judge
	// between is called after every record: a consumer that restarts returns another judge.
	between func(r *reader, shard, record int, j judge) judge
	ends    []judge
	got     map[*simLane][]int
}

func (r *reader) read() {
	r.got = map[*simLane][]int{}
	for shard, s := range r.w.shards { // parents precede their children
		j := r.start(s)
		for i, record := range s.log {
			for _, delivered := range r.feed(s, record, j) {
				r.deliver(delivered)
			}
			if r.between != nil {
				j = r.between(r, shard, i, j)
			}
		}
		r.ends = append(r.ends, j)
	}
}

func (r *reader) start(s *simShard) judge {
	var parents []judge
	for _, parent := range s.parents {
		parents = append(parents, r.ends[parent])
	}
	return r.begin(parents)
}

// payload is a delivered record with the producer that its unit names.
type payload struct {
	producer aggregate.ProducerID
	key      string
	n        int
}

// feed passes a stored record to the judge and returns the delivered records.
func (r *reader) feed(s *simShard, record stored, j judge) (passed []payload) {
	var d aggregate.Decoder
	if !d.Open(record.data) {
		panic("not an aggregate")
	}
	if d.Check(s.hashes) != nil {
		return nil // void
	}
	var producers []aggregate.ProducerID // of each record: the filter does not say
	for _, record := range d.Records() {
		if unit, ok := record.Unit(); ok {
			producers = append(producers, unit.Producer)
		} else {
			producers = append(producers, producers[len(producers)-1])
		}
	}
	for sub, record := range j.pass(&d, time.UnixMilli(record.arrival)) {
		n, err := strconv.Atoi(string(record.Data))
		if err != nil {
			panic(err)
		}
		passed = append(passed, payload{producers[sub], record.PartitionKey, n})
	}
	return passed
}

func (r *reader) deliver(p payload) {
	for _, producer := range r.w.producers {
		for _, l := range producer.lanes {
			if producer.id == p.producer && l.key == p.key {
				r.got[l] = append(r.got[l], p.n)
			}
		}
	}
}

// damage counts the records that a reading doubled, lost or reordered.
type damage struct{ doubled, lost, reordered int }

func (r *reader) damage() (d damage) {
	for _, p := range r.w.producers {
		for _, l := range p.lanes {
			seen := map[int]bool{}
			highest := -1
			for _, n := range r.got[l] {
				if seen[n] {
					d.doubled++
				} else if n < highest && !p.unordered {
					d.reordered++
				}
				seen[n] = true
				highest = max(highest, n)
			}
			for _, n := range l.acked {
				if !seen[n] {
					d.lost++
				}
			}
			if len(l.acked)+len(l.gone) != l.put {
				panic(fmt.Sprintf("%d records put, %d acknowledged, %d given up", l.put, len(l.acked), len(l.gone)))
			}
		}
	}
	return d
}

// filterJudge is the filter itself.
type filterJudge struct{ f *aggregate.Filter }

func (j filterJudge) pass(d *aggregate.Decoder, arrival time.Time) iter.Seq2[int, aggregate.Record] {
	return j.f.Pass(d, arrival)
}

func filters(judges []judge) (list []*aggregate.Filter) {
	for _, j := range judges {
		list = append(list, j.(filterJudge).f)
	}
	return list
}

func union(parents []judge) judge { return filterJudge{aggregate.Union(filters(parents)...)} }

// saved restarts now and then from the state that a sink kept.
func saved(r *reader, _, record int, j judge) judge {
	if record%7 != 3 {
		return j
	}
	text, err := j.(filterJudge).f.MarshalText()
	if err != nil {
		panic(err)
	}
	restored := &aggregate.Filter{}
	if err := restored.UnmarshalText(text); err != nil {
		panic(err)
	}
	return filterJudge{restored}
}

// rebuilt restarts now and then with nothing, and reads again from 4H before its checkpoint, or
// from so much earlier that the filter counts 4H.
func rebuilt(r *reader, shard, record int, j judge) judge {
	if record%53 != 5 {
		return j
	}
	at := r.w.shards[shard].log[record].arrival
	for span := 4 * simH; ; span *= 2 {
		f := r.rebuild(shard, record+1, at-span, map[int]*aggregate.Filter{})
		if f.Elapsed() >= f.Remembers() || at-span < simEpoch {
			return filterJudge{f}
		}
	}
}

func (r *reader) rebuild(shard, to int, from int64, ends map[int]*aggregate.Filter) *aggregate.Filter {
	s := r.w.shards[shard]
	var parents []*aggregate.Filter
	for _, parent := range s.parents {
		if ends[parent] == nil {
			ends[parent] = r.rebuild(parent, len(r.w.shards[parent].log), from, ends)
		}
		parents = append(parents, ends[parent])
	}
	f := aggregate.Union(parents...)
	for _, record := range s.log[:to] {
		if record.arrival >= from {
			r.feed(s, record, filterJudge{f})
		}
	}
	return f
}

// Under late commits, lost answers, units given up, splits and merges nothing is doubled, lost
// or out of order, whichever way the state is kept.
func TestFilterIsExact(t *testing.T) {
	units, doubles, largest := uint64(0), uint64(0), 0
	for seed := range uint64(40 * soak()) {
		w := simulate(seed, false)
		for name, between := range map[string]func(*reader, int, int, judge) judge{
			"kept": nil, "saved": saved, "rebuilt": rebuilt,
		} {
			r := reader{w: w, begin: union, between: between}
			r.read()
			if d := r.damage(); d != (damage{}) {
				t.Fatalf("seed %d, state %s: %+v", seed, name, d)
			}
			if name != "kept" {
				continue
			}
			for _, f := range filters(r.ends) {
				units += f.Counts.Fresh
				doubles += f.Counts.Doubles
				if f.Counts.Malformed+f.Counts.Unfiltered > 0 {
					t.Fatalf("seed %d: %+v", seed, f.Counts)
				}
				state, _ := f.MarshalBinary()
				largest = max(largest, len(state))
			}
		}
	}
	t.Logf("soak: %d seeds, %d units, %d doubles dropped, a state of at most %d bytes",
		40*soak(), units, doubles, largest)
	if units < 1000 || doubles < 500 {
		t.Errorf("%d units and %d doubles are not worth the test", units, doubles)
	}
}

// setJudge remembers numbers instead of lanes.
type setJudge map[aggregate.ProducerID]*numberSet

type numberSet struct {
	low  uint64
	seen map[uint64]bool
}

func (j setJudge) pass(d *aggregate.Decoder, _ time.Time) iter.Seq2[int, aggregate.Record] {
	return func(yield func(int, aggregate.Record) bool) {
		deliver := true
		for sub, record := range d.Records() {
			if unit, ok := record.Unit(); ok {
				set := j[unit.Producer]
				if set == nil {
					set = &numberSet{seen: map[uint64]bool{}}
					j[unit.Producer] = set
				}
				deliver = unit.Number >= set.low && !set.seen[unit.Number]
				set.low = max(set.low, unit.Low)
				set.seen[unit.Number] = true
			}
			if deliver && !yield(sub, record) {
				return
			}
		}
	}
}

func unionOfSets(parents []judge) judge {
	all := setJudge{}
	for _, parent := range parents {
		for id, from := range parent.(setJudge) {
			if all[id] == nil {
				all[id] = &numberSet{seen: map[uint64]bool{}}
			}
			all[id].low = max(all[id].low, from.low)
			for n := range from.seen {
				all[id].seen[n] = true
			}
		}
	}
	return all
}

// noJudge lets everything pass.
type noJudge struct{}

func (noJudge) pass(d *aggregate.Decoder, _ time.Time) iter.Seq2[int, aggregate.Record] {
	return d.Records()
}

// Each part of the rule is needed: without it the same worlds do damage.
func TestControlsDoDamage(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     time.Duration
		guess bool
		begin func([]judge) judge
		hurt  func(damage) int
	}{
		{"no filter doubles", aggregate.H, false, func([]judge) judge { return noJudge{} }, func(d damage) int { return d.doubled }},
		{"a set instead of lanes reorders", aggregate.H, false, unionOfSets, func(d damage) int { return d.reordered }},
		{"a state that is not inherited doubles", aggregate.H, false, func([]judge) judge { return union(nil) }, func(d damage) int { return d.doubled }},
		{"a guessed mark loses", aggregate.H, true, union, func(d damage) int { return d.lost }},
		{"a producer that is forgotten early doubles", 100 * time.Millisecond, false, union, func(d damage) int { return d.doubled }},
	} {
		t.Run(c.name, func(t *testing.T) {
			seam.SetH(t, c.h)
			const runs = 20
			hurt := 0
			for seed := range uint64(runs) {
				r := reader{w: simulate(seed, c.guess), begin: c.begin}
				r.read()
				if c.hurt(r.damage()) > 0 {
					hurt++
				}
			}
			if t.Logf("damage in %d of %d runs", hurt, runs); hurt < runs/2 {
				t.Errorf("damage in %d of %d runs only", hurt, runs)
			}
		})
	}
}
