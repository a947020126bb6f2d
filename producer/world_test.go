package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
)

// world is a model of a stream with every behaviour that a producer can meet. Each unit of each
// call is stored or not, and answered or not. A unit without an answer may be stored now, never, or
// at any later moment within 2H: after its own retry, after the lane's next unit, or after it was
// given up. Clocks go wrong too: see worldTime. Shards split and merge, the journal fails, and the
// program crashes and resumes. The stream is read through aggregate.Filter, as consumers do.
//
// Records are identified by marks, from 1 in the order of put. A crash does not change them.
type world struct {
	*rapid.T
	limits limits
	core   *core
	now    time.Time
	calls  []*call // the calls in flight
	began  map[*call]time.Time
	late   []lateUnit
	shards []*modelShard
	number int // the last sequence number
	time   worldTime
	charts [][]runnel.Shard // all lists of the shards so far

	records  []runnel.Record   // by mark, from 1
	ends     map[uint64]Result // by mark
	last     map[laneKey]uint64
	unknowns int // attempts of records without an answer, since the last crash

	frozen    map[tag]firstSend
	journal   []FrozenUnit // the open units
	crashes   int
	crashable bool

	through, flushed int // the last record that the flush waits for, and the flushes that ended
}

type firstSend struct {
	data        string
	at, readers time.Time
	boot        int
}

// lateUnit is a unit that may be stored at any moment before a deadline, or never.
type lateUnit struct {
	key      laneKey
	data     []byte
	deadline time.Time
}

type modelShard struct {
	id      runnel.ShardID
	hashes  keyspace.Range
	parents []*modelShard
	closed  bool
	log     []modelRecord
	visible int // the records of log that can be read while the disk hangs
}

type modelRecord struct {
	key     laneKey
	data    []byte
	number  int
	arrival time.Time
	readers time.Time // the time by the readers' clock
}

func newWorld(t *rapid.T, l limits) *world {
	seam.SetH(t, l.horizon)
	w := &world{
		T: t, limits: l, now: time.Unix(1_700_000_000, 0), records: make([]runnel.Record, 1),
		ends: map[uint64]Result{}, last: map[laneKey]uint64{}, frozen: map[tag]firstSend{},
		began: map[*call]time.Time{}, time: newWorldTime(t),
	}
	for _, r := range keyspace.Uniform(rapid.IntRange(1, 3).Draw(t, "shards")) {
		w.addShard(r)
	}
	w.chart()
	w.start()
	return w
}

// unordered reports whether the producer keeps no order.
func (w *world) unordered() bool { return w.limits.order == OrderNone }

// start makes a core for a new run of the program.
func (w *world) start() {
	seed := rapid.Uint64().Draw(w.T, "seed")
	w.core = newCore("s", w.limits, rand.New(rand.NewPCG(1, seed)))
	w.core.began = w.clock()
	w.crashes++
	w.core.groups.identify(aggregate.ProducerID{byte(w.crashes)})
}

func (w *world) addShard(r keyspace.Range, parents ...*modelShard) {
	for _, p := range parents {
		p.closed = true
	}
	w.shards = append(w.shards, &modelShard{
		id:     runnel.ShardID(fmt.Sprintf("shardId-%012d", len(w.shards))),
		hashes: r, parents: parents,
	})
}

// reshard splits a shard or merges two.
func (w *world) reshard() {
	var open []*modelShard
	for _, s := range w.shards {
		if !s.closed {
			open = append(open, s)
		}
	}
	s := rapid.SampledFrom(open).Draw(w.T, "shard")
	defer w.chart()
	if len(open) < 5 && rapid.Bool().Draw(w.T, "split") {
		low, high := s.hashes.SplitAt(s.hashes.Middle())
		w.addShard(low, s)
		w.addShard(high, s)
		return
	}
	for _, other := range open {
		if s.hashes.Precedes(other.hashes) {
			w.addShard(s.hashes.Join(other.hashes), s, other)
			return
		}
	}
}

// chart remembers the present list of the shards. Later listings may return it, out of date.
func (w *world) chart() {
	var list []runnel.Shard
	for _, s := range w.shards {
		shard := runnel.Shard{ID: s.id, Range: s.hashes}
		if s.closed {
			shard.Last = "9"
		}
		list = append(list, shard)
	}
	w.charts = append(w.charts, list)
}

// list answers a listing of the shards that the core or the answer of a call needs.
func (w *world) list(calm bool) {
	list := w.charts[len(w.charts)-1]
	var err error
	if !calm {
		switch rapid.IntRange(0, 5).Draw(w.T, "list") {
		case 0:
			err = errors.New("the listing failed")
		case 1:
			list = rapid.SampledFrom(w.charts).Draw(w.T, "old list")
		}
	}
	if err == nil && rapid.IntRange(0, 3).Draw(w.T, "rotate") == 0 {
		list = append(slices.Clone(list[len(list)/2:]), list[:len(list)/2]...)
	}
	w.core.chart.running = false
	if got := w.core.takeShards(w.clock(), list, err); !errors.Is(got, err) {
		w.Fatalf("a list is refused: %v", got)
	}
}

func (w *world) store(key laneKey, data []byte) verdict {
	hash := aggregate.Record{PartitionKey: key.partition, ExplicitHashKey: key.hash}.Hash()
	for _, s := range w.shards {
		if !s.closed && s.hashes.Contains(hash) {
			w.number++
			s.log = append(s.log, modelRecord{key, data, w.number, w.server(), w.stored()})
			return placed(s.id, runnel.SequenceNumber(strconv.Itoa(w.number)))
		}
	}
	w.Fatalf("no shard is open for %v", key)
	return verdict{}
}

func keyOf(r runnel.Record) laneKey { return laneKey{r.PartitionKey, r.ExplicitHashKey} }

// A record's data begins with its mark. With the suffix bad the stream refuses the whole call.
const bad = "bad"

func markIn(data []byte) uint64 {
	text, _, _ := strings.Cut(string(data), " ")
	mark, _ := strconv.ParseUint(text, 10, 64)
	return mark
}

func isBad(r runnel.Record) bool { return strings.HasSuffix(string(r.Data), bad) }

func (w *world) put() {
	// A few keys have many records, and many keys have few.
	n := rapid.SampledFrom([]int{2, 5, 40}).Draw(w.T, "spread")
	mark := len(w.records)
	record := runnel.Record{
		PartitionKey: fmt.Sprint("k", rapid.IntRange(1, n).Draw(w.T, "key")),
		Data: fmt.Append(nil, mark, " ",
			strings.Repeat("x", rapid.IntRange(0, 60).Draw(w.T, "size"))),
	}
	if rapid.IntRange(0, 9).Draw(w.T, "hash") == 0 {
		record.ExplicitHashKey = "7"
	}
	switch rapid.IntRange(0, 29).Draw(w.T, "kind") {
	case 0:
		record.Data = append(record.Data, bad...)
	case 1:
		if w.limits.order.units() && !w.limits.journal { // some records are aggregates already
			var e aggregate.Encoder
			_ = e.Add(aggregate.Record{PartitionKey: record.PartitionKey, Data: record.Data})
			record.Data = e.Seal(nil)
		}
	}
	w.records = append(w.records, record)
	w.core.putAlone(w.clock(), &entry{record: record, mark: uint64(mark)})
}

// recordsOf returns the records in a lane's unit.
func recordsOf(l *lane) (records []*entry) {
	for e := l.unit.first; e != nil; e = e.next {
		records = append(records, e)
	}
	return records
}

// launch makes the calls that can be made, and checks the rules for each.
func (w *world) launch() {
	for made := w.core.launchSealed(w, w.clock()); made != nil; made = w.core.launchSealed(w, w.clock()) {
		w.checkCall(made)
		if len(made.fresh) > 0 && !w.keep(made) {
			w.core.land(w.clock(), made, outcome{all: verdict{fate: withheld, err: errors.New("no journal")}})
			w.collect()
			break // go on later
		}
		w.calls = append(w.calls, made)
		w.began[made] = w.now
		w.time.began[made] = w.server()
	}
	if len(w.calls) > w.limits.calls {
		w.Fatalf("%d calls in flight, the limit is %d", len(w.calls), w.limits.calls)
	}
	flying := map[any]bool{}
	for _, c := range w.calls {
		for _, l := range c.lanes {
			var name any = l.key
			if w.unordered() {
				name = l.unit.first.mark
			}
			if flying[name] {
				w.Fatalf("two units of lane %v are in flight", l.key)
			}
			flying[name] = true
		}
	}
}

func (w *world) checkCall(made *call) {
	l := w.limits
	if n := len(made.parcels); n == 0 || n > l.records {
		w.Fatalf("a call of %d units, the limit is %d", n, l.records)
	}
	bytes, last, records := 0, uint64(0), 0
	for _, lane := range made.lanes {
		head := lane.unit.first.number
		if head < last && l.giveUp == 0 && l.order != OrderShard {
			w.Fatalf("record %d goes before %d", last, head)
		}
		last, records = max(head, last), records+lane.unit.count
		if l.order != OrderShard {
			w.checkUnit(lane, lane.unit.data)
		}
	}
	for i := range made.parcels {
		p := &made.parcels[i]
		bytes += len(p.data) + len(p.key.partition)
		if l.order == OrderShard {
			w.checkParcel(p)
		}
	}
	for _, left := range w.core.lanes {
		if left.state == ready && left.head() != nil && left.head().number < last && l.giveUp == 0 {
			w.Fatalf("record %d goes before %d, which was ready", last, left.head().number)
		}
	}
	if bytes != made.bytes || bytes > l.bytes && len(made.lanes) > 1 && l.order != OrderShard || bytes > l.bytes && len(made.parcels) > 1 || records != made.records {
		w.Fatalf("a call of %d bytes (it says %d), the limit is %d", bytes, made.bytes, l.bytes)
	}
}

// checkParcel unpacks a Kinesis record of many units, and checks each unit.
func (w *world) checkParcel(b *parcel) {
	if !b.lanes[0].unit.wrapped() {
		if len(b.lanes) > 1 || string(b.data) != string(b.lanes[0].unit.data) ||
			b.key != b.lanes[0].key {
			w.Fatalf("an aggregate goes with %d others, as %q", len(b.lanes)-1, b.data)
		}
		return
	}
	size := len(b.data) + len(b.key.partition)
	if size > w.limits.unit && len(b.lanes) > 1 {
		w.Fatalf("a box of %d bytes, the limit is %d", size, w.limits.unit)
	}
	var d aggregate.Decoder
	if !d.Open(b.data) {
		w.Fatalf("a box is no aggregate")
	}
	records := d.AppendRecords(nil)
	if b.key != (laneKey{"a", records[0].Hash().String()}) {
		w.Fatalf("a box has the key %v", b.key)
	}
	if !slices.ContainsFunc(w.core.chart.open, func(s runnel.Shard) bool {
		return d.Check(s.Range) == nil
	}) {
		w.Fatalf("a box is for no shard of the list")
	}
	for _, l := range b.lanes {
		var e aggregate.Encoder
		for _, r := range records[:l.unit.count] {
			if err := e.Add(r); err != nil {
				w.Fatal(err)
			}
		}
		records = records[l.unit.count:]
		w.checkUnit(l, e.Seal(nil))
	}
	if len(records) > 0 {
		w.Fatalf("%d records of a box are of no unit", len(records))
	}
}

// checkUnit checks the rules for a unit that is about to be sent.
func (w *world) checkUnit(l *lane, data []byte) {
	u := &l.unit
	marks := []uint64{}
	for _, e := range recordsOf(l) {
		if keyOf(e.record) != l.key && !w.unordered() {
			w.Fatalf("a record of %v in a unit of %v", keyOf(e.record), l.key)
		}
		marks = append(marks, e.mark)
	}
	if len(marks) != u.count {
		w.Fatalf("a unit of %d records counts %d", len(marks), u.count)
	}
	if !w.limits.order.units() || aggregate.IsAggregate(u.first.record.Data) {
		if u.count != 1 || string(u.data) != string(u.first.record.Data) || u.wrapped() {
			w.Fatalf("a record that goes as it is goes as %q", u.data)
		}
		return
	}
	if size := l.size(); size > w.limits.unit && u.count > 1 {
		w.Fatalf("a unit of %d bytes, the limit is %d", size, w.limits.unit)
	}
	var d aggregate.Decoder
	if !d.Open(data) {
		w.Fatalf("a unit is no aggregate")
	}
	inside := []uint64{}
	for sub, r := range d.Records() {
		inside = append(inside, markIn(r.Data))
		if unit, ok := r.Unit(); ok != (sub == 0) || ok && unit != u.id {
			w.Fatalf("record %d of a unit has the identity %v %v, want %v", sub, unit, ok, u.id)
		}
		key := laneKey{r.PartitionKey, r.ExplicitHashKey}
		if w.unordered() && sub == 0 {
			key = laneKey{"a", r.Hash().String()}
		}
		if key != l.key && (sub == 0 || !w.unordered()) {
			w.Fatalf("a record of %q %q is in a unit of %v", r.PartitionKey, r.ExplicitHashKey, l.key)
		}
	}
	if !slices.Equal(inside, marks) {
		w.Fatalf("a unit holds the records %v, want %v", inside, marks)
	}
	if u.id.Unordered != w.unordered() {
		w.Fatalf("%+v in a producer that packs: %v", u.id, w.unordered())
	}
	if u.id.Number-u.id.Low > w.limits.window {
		w.Fatalf("unit %d has the low %d: the window is %d", u.id.Number, u.id.Low, w.limits.window)
	}
	key := tag{u.id.Producer, u.id.Number}
	first, again := w.frozen[key]
	switch {
	case !again:
		w.checkGroup(l)
		w.frozen[key] = firstSend{string(data), w.now, w.readers(), w.time.boot}
		if w.unordered() && !slices.ContainsFunc(w.core.chart.open, func(s runnel.Shard) bool {
			return d.Check(s.Range) == nil
		}) {
			w.Fatalf("unit %d is for no shard of the list", u.id.Number)
		}
	case first.data != string(data):
		w.Fatalf("unit %d is sent again with other bytes", u.id.Number)
	case w.tooLate(first):
		w.Fatalf("unit %d is sent %v after its first send, %v by a reader's clock, boots %d and %d",
			u.id.Number, w.now.Sub(first.at), w.readers().Sub(first.readers), first.boot, w.time.boot)
	}
}

// keep stores the new units of a call in the journal. It may fail, and may have stored them
// nevertheless.
func (w *world) keep(made *call) bool {
	w.collect()
	fails := rapid.IntRange(0, 5).Draw(w.T, "journal") == 0
	for _, l := range made.fresh {
		u := w.freeze(l)
		w.journal = slices.DeleteFunc(w.journal, func(open FrozenUnit) bool {
			return open.Unit == u.Unit // stored by an earlier Frozen that failed
		})
		for _, open := range w.journal {
			if !w.unordered() && open.PartitionKey == u.PartitionKey && open.ExplicitHashKey == u.ExplicitHashKey {
				w.Fatalf("unit %d of lane %v is frozen, and %d is open", u.Unit.Number, l.key,
					open.Unit.Number)
			}
		}
		if !fails || rapid.Bool().Draw(w.T, "kept") {
			w.journal = append(w.journal, u)
		}
		l.unit.kept = !fails
	}
	return !fails
}

// land gives one of the calls in flight an outcome. If calm is set, nothing fails.
func (w *world) land(calm bool) {
	if len(w.calls) == 0 {
		return
	}
	made := rapid.SampledFrom(w.calls).Draw(w.T, "call")
	whole := rapid.SampledFrom([]fate{stored, unknown, unknown, notSent, throttled, failed}).
		Draw(w.T, "whole")
	if calm || rapid.IntRange(0, 2).Draw(w.T, "single") > 0 {
		whole = stored
	}
	if whole == stored && slices.ContainsFunc(entriesOf(made), holdsBad) {
		whole = suspect
	}
	w.landAs(made, whole, calm)
}

// landAs gives a call its outcome: `whole` for all units or, if that is stored, one for each unit.
func (w *world) landAs(made *call, whole fate, calm bool) {
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c == made })
	if w.time.hung && whole == stored {
		whole = unknown // stored records are not durable yet
	}
	sent := entriesOf(made)
	o := outcome{each: make([]verdict, len(sent))}
	if whole != stored {
		o = outcome{all: verdict{fate: whole, err: errors.New("as a whole")}}
	}
	for i, e := range sent {
		f := whole
		if whole == stored && !calm {
			f = rapid.SampledFrom([]fate{stored, stored, stored, throttled, failed, unknown}).
				Draw(w.T, "fate")
		}
		v := w.applyFate(made, e, f)
		if o.each != nil {
			o.each[i] = v
		}
	}
	for i, v := range o.each {
		if !w.limits.order.byShard() || v.fate != stored || !sent[i].wrapped {
			continue
		}
		if _, known := w.core.chart.ranges[v.shard]; !known {
			w.list(calm)
		}
	}
	for i, v := range o.each {
		if w.limits.order.byShard() && v.fate == stored && sent[i].wrapped {
			if _, known := w.core.chart.ranges[v.shard]; !known {
				w.unknowns += sent[i].count
			}
		}
	}
	w.date(o.answered(), made)
	w.core.land(w.clock(), made, o)
}

// sentEntry is a Kinesis record of a call.
type sentEntry struct {
	key     laneKey
	data    []byte
	records []*entry
	count   int
	wrapped bool
}

func entriesOf(made *call) (sent []sentEntry) {
	for _, b := range made.parcels {
		e := sentEntry{key: b.key, data: b.data, wrapped: b.lanes[0].unit.wrapped()}
		for _, l := range b.lanes {
			e.records = append(e.records, recordsOf(l)...)
			e.count += l.unit.count
		}
		sent = append(sent, e)
	}
	return sent
}

func holdsBad(sent sentEntry) bool {
	return slices.ContainsFunc(sent.records, func(e *entry) bool { return isBad(e.record) })
}

// applyFate stores a Kinesis record now, later or not at all, depending on its fate, and returns
// the verdict on it.
func (w *world) applyFate(made *call, l sentEntry, f fate) verdict {
	switch f {
	case stored:
		return w.store(l.key, l.data)
	case unknown:
		w.unknowns += l.count
		switch rapid.SampledFrom([]string{"now", "never", "late"}).Draw(w.T, "unknown") {
		case "now":
			if !holdsBad(l) {
				w.store(l.key, l.data)
			}
		case "late":
			if !holdsBad(l) {
				w.late = append(w.late, lateUnit{
					l.key, l.data, w.began[made].Add(2 * w.limits.horizon),
				})
			}
		}
	}
	return verdict{fate: f, err: errors.New("alone")}
}

func (w *world) commitLate() {
	if len(w.late) > 0 {
		i := rapid.IntRange(0, len(w.late)-1).Draw(w.T, "late")
		w.store(w.late[i].key, w.late[i].data)
		w.late = slices.Delete(w.late, i, i+1)
	}
}

// advance advances the time. A call has a time-out of half a horizon. A unit to be stored late is
// stored before the end of its signature's life, or never.
func (w *world) advance(d time.Duration) {
	for end := w.now.Add(d); ; {
		w.now = end
		for _, made := range w.calls {
			if timeout := w.began[made].Add(w.limits.horizon / 2); timeout.Before(w.now) {
				w.now = timeout
			}
		}
		for _, late := range w.late {
			if late.deadline.Before(w.now) {
				w.now = late.deadline
			}
		}
		if w.now.Equal(end) {
			return
		}
		for _, made := range slices.Clone(w.calls) {
			if !w.now.Before(w.began[made].Add(w.limits.horizon / 2)) {
				w.landAs(made, unknown, false)
			}
		}
		w.late = slices.DeleteFunc(w.late, func(late lateUnit) bool {
			if w.now.Before(late.deadline) {
				return false
			}
			if rapid.Bool().Draw(w.T, "in time") {
				w.store(late.key, late.data)
			}
			return true
		})
	}
}

// collect takes the results. There is one for each record, in the order of each lane.
func (w *world) collect() {
	for _, s := range w.core.ledger.settled {
		if s.entry == nil {
			if w.flushed++; len(w.ends) < w.through {
				w.Fatalf("flushed with %d results, want %d", len(w.ends), w.through)
			}
			continue
		}
		mark, key := s.entry.mark, keyOf(s.entry.record)
		if _, twice := w.ends[mark]; twice {
			w.Fatalf("record %d has two results", mark)
		}
		if last := w.last[key]; last > mark && !w.unordered() {
			w.Fatalf("the result of record %d comes after that of %d of its lane", mark, last)
		}
		w.last[key], w.ends[mark] = mark, s.result
	}
	w.core.ledger.settled = nil
	for _, end := range w.core.ledger.ended {
		w.journal = slices.DeleteFunc(w.journal, func(open FrozenUnit) bool {
			return open.Unit.Producer == end.Producer && open.Unit.Number == end.Number
		})
	}
	w.core.ledger.ended = nil
}

func (w *world) step(calm bool) {
	w.core.tick(w.clock())
	w.checkBlocked()
	w.search(calm)
	w.ask(calm)
	if w.core.listing(w.clock()) && (calm || rapid.Bool().Draw(w.T, "lists")) {
		w.list(calm)
	}
	w.launch()
	w.land(calm)
	w.collect()
}

// crash ends the program and starts it again. The new run resumes the open units of its journal,
// and puts the records again of which the journal has nothing.
func (w *world) crash() {
	w.collect()
	for _, made := range w.calls {
		for _, e := range entriesOf(made) {
			w.applyFate(made, e, unknown)
		}
	}
	w.calls = nil // their late units may still be stored
	w.restart()
	known := map[uint64]bool{}
	for _, f := range w.journal {
		w.resume(f)
		for _, mark := range f.Marks {
			known[mark] = true
		}
	}
	for mark, record := range w.records {
		if _, ended := w.ends[uint64(mark)]; mark > 0 && !ended && !known[uint64(mark)] {
			w.core.putAlone(w.clock(), &entry{record: record, mark: uint64(mark)})
		}
	}
}

// run runs a random history, and then works without faults until every record has its result.
func (w *world) run() {
	for range rapid.IntRange(1, 300).Draw(w.T, "steps") {
		what := 11
		if w.limits.order.byShard() {
			what = 13 // more reshards
		}
		switch rapid.IntRange(0, what).Draw(w.T, "what") {
		case 0, 1, 2, 3:
			w.put()
		case 4, 5, 6, 7:
			w.step(false)
		case 8:
			w.commitLate()
		case 9:
			w.disturbTime()
		case 10:
			w.advance(time.Duration(rapid.IntRange(0, 2000).Draw(w.T, "ms")) * time.Millisecond)
		case 12, 13:
			w.reshard()
		case 11:
			switch rapid.IntRange(0, 3).Draw(w.T, "rare") {
			case 0, 1:
				w.reshard()
			case 2:
				if w.crashable {
					w.crash()
				}
			}
		}
	}
	w.finish()
}

func (w *world) finish() {
	w.time.hung = false
	taken := len(w.records) - 1
	w.through = taken
	w.core.ledger.flush(make(chan struct{}))
	// Each record needs a step and some need a wait. With far more steps than that the
	// producer makes no progress.
	for i := 0; len(w.ends) < taken; i++ {
		if i > 100*taken+1000 {
			w.Fatalf("%d of %d records have a result", len(w.ends), taken)
		}
		w.core.tick(w.clock())
		w.search(true)
		w.ask(true)
		if w.core.listing(w.clock()) || w.core.chart.running {
			w.list(true)
		}
		w.launch()
		w.collect()
		if len(w.calls) == 0 && len(w.ends) < taken {
			if at, ok := w.core.wake(); !ok {
				w.Fatalf("%d records wait, and nothing will wake the core", taken-len(w.ends))
			} else if at.After(w.clock()) {
				w.advance(at.Sub(w.clock()))
			}
			continue
		}
		w.land(true)
		w.collect()
	}
	w.collect()
	// A lane that giving up has emptied is removed when its turn comes.
	for range 3 {
		w.advance(time.Minute)
		w.core.tick(w.clock())
		w.search(true)
		if made := w.core.launchSealed(w, w.clock()); made != nil {
			w.Fatalf("a call of %d records, and none is left", made.records)
		}
	}
	if w.flushed != 1 {
		w.Fatalf("the flush was told %d times", w.flushed)
	}
}
