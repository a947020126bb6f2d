package aggregate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Delta is the change of a filter's state between two moments: Filter.Apply of the Delta to the
// state before makes the state after. Its size grows with the units between the two, not with the
// lanes of the filter, so that a sink can store it in each commit. The zero value is no change.
//
// It lists the producers that the filter has forgotten, since a sink cannot compute them: they
// depend on H, which tests change.
type Delta struct {
	some      bool // clock and arrival count
	clock     int64
	arrival   int64
	removed   map[ProducerID]struct{}
	producers map[ProducerID]*change
}

// change is the change of one producer. If the producer is also in removed, the removal came first.
type change struct {
	last  int64
	low   uint64
	lanes []laneState // in the order of their units: the last number of a lane counts
	again bool        // a lane may occur several times
	tidy  int         // the number of lanes after the last shorten
}

// Track starts the recording of changes for Delta.
func (f *Filter) Track() { f.changes = new(Delta) }

// Delta returns the change of the state since the last call of Delta or Track; nil without a Track.
// The caller owns it.
func (f *Filter) Delta() *Delta {
	d := f.changes
	if d == nil {
		return nil
	}
	f.Track()
	d.some, d.clock, d.arrival = true, f.clock, f.arrival
	return d
}

// note adds a judged unit to the changes.
func (f *Filter) note(unit Unit, lane Lane, verdict Verdict) {
	p := f.producers[unit.Producer]
	if p == nil {
		return // no room for it
	}
	c := f.changes.change(unit.Producer)
	c.last, c.low = p.last, p.low
	if c.low == 0 {
		c.lanes = nil
	} else if verdict == VerdictFresh {
		c.lanes = append(c.lanes, laneState{unit.Number, lane})
		// A lane that a prune drops later is below the mark, and the mark is in the change.
		c.again = c.again || f.known
	}
}

func (d *Delta) change(id ProducerID) *change {
	c := d.producers[id]
	if c == nil {
		if d.producers == nil {
			d.producers = map[ProducerID]*change{}
		}
		c = new(change)
		d.producers[id] = c
	}
	return c
}

func (d *Delta) remove(id ProducerID) {
	delete(d.producers, id)
	if d.removed == nil {
		d.removed = map[ProducerID]struct{}{}
	}
	d.removed[id] = struct{}{}
}

// Merge appends next to d: d becomes the change from before d to after next. The two share no
// memory.
func (d *Delta) Merge(next *Delta) {
	if !next.some {
		return
	}
	d.some, d.clock, d.arrival = true, next.clock, next.arrival
	for id := range next.removed {
		d.remove(id)
	}
	for id, from := range next.producers {
		c := d.change(id)
		c.last, c.low = from.last, from.low
		if c.low == 0 {
			c.lanes = nil
			continue
		}
		c.again = c.again || len(c.lanes) > 0 || from.again
		c.lanes = append(c.lanes, from.lanes...)
		const few = 1 << 10
		if len(c.lanes) > 2*c.tidy+few { // a lane with many units is there many times
			c.shorten()
		}
	}
}

// shorten sorts the lanes by number and drops those that the state no longer has.
func (c *change) shorten() {
	slices.SortFunc(c.lanes, laneState.compare)
	if !c.again {
		for len(c.lanes) > 0 && c.lanes[0].number < c.low {
			c.lanes = c.lanes[1:]
		}
		return
	}
	seen := make(map[Lane]struct{}, len(c.lanes))
	kept := len(c.lanes)
	for i := len(c.lanes) - 1; i >= 0 && c.lanes[i].number >= c.low; i-- {
		l := c.lanes[i]
		if _, later := seen[l.lane]; later {
			continue
		}
		seen[l.lane] = struct{}{}
		kept--
		c.lanes[kept] = l
	}
	c.lanes = c.lanes[kept:]
	c.tidy, c.again = len(c.lanes), false
}

// Apply changes the state from before d to after d. A filter that tracks its changes does not
// record these.
func (f *Filter) Apply(d *Delta) {
	if !d.some {
		return
	}
	f.clock, f.arrival, f.fullUntil = d.clock, d.arrival, 0
	for id := range d.removed {
		if p := f.producers[id]; p != nil {
			f.lanes -= len(p.lanes)
			delete(f.producers, id)
		}
	}
	if f.producers == nil {
		f.producers = map[ProducerID]*producer{}
	}
	for id, c := range d.producers {
		p := f.producers[id]
		if p == nil {
			p = newProducer(c.low, c.last)
			f.producers[id] = p
		}
		before := len(p.lanes)
		p.apply(c)
		f.lanes += len(p.lanes) - before
	}
}

func (p *producer) apply(c *change) {
	p.low, p.last = c.low, c.last
	if p.low == 0 {
		p.lanes = nil
		return
	}
	if p.lanes == nil {
		p.lanes = map[Lane]uint64{}
	}
	for _, l := range c.lanes {
		p.lanes[l.lane] = max(p.lanes[l.lane], l.number)
	}
	if len(p.lanes) >= p.pruneAt {
		p.dropBelowLow() // the filter that recorded d has already found broken producers
	}
}

// The kinds of a lane in a Delta's bytes.
const (
	laneInFull    = 0 // 16 bytes follow
	laneUnordered = 1 // that of the number
	laneByIndex   = 2 // the zigzag of its index less the index before follows
	laneBehind    = 3 // see below
)

// The encoding of a Delta resembles that of a state; no bytes are no change.
//
//	1                                       the version
//	clock, arrival
//	removed
//	  id (16 bytes)
//	producers
//	  id (16 bytes), clock - last, low
//	  lanes, unless low is 0
//	    (number - the number before) << 2 | kind
//	    lane (16 bytes), or an index
//
// Most lanes of a run with many keys have the next number and a slightly higher index. Such a lane
// takes one byte: kind 3 means the number before plus one, and the place of the number's step holds
// the index less the index before, less one.
const deltaVersion = 1

// AppendBinary appends the change to dst; the error is nil.
func (d *Delta) AppendBinary(dst []byte) ([]byte, error) { return d.AppendIndexed(dst, nil), nil }

// MarshalBinary returns the change; the error is nil.
func (d *Delta) MarshalBinary() ([]byte, error) { return d.AppendBinary(nil) }

// AppendIndexed appends the change to dst, with index(lane), from 0 to 2^31 - 1, in place of each
// lane for which index returns true. A sink stores records of most of these lanes beside the
// change, so it can name a lane by one of its records, in a byte or two instead of 16. ParseDelta
// reads the result.
func (d *Delta) AppendIndexed(dst []byte, index func(Lane) (int, bool)) []byte {
	if !d.some {
		return dst
	}
	dst = append(dst, deltaVersion)
	dst = binary.AppendUvarint(dst, uint64(d.clock))   //nolint:gosec // never negative
	dst = binary.AppendUvarint(dst, uint64(d.arrival)) //nolint:gosec // never negative
	dst = binary.AppendUvarint(dst, uint64(len(d.removed)))
	for _, id := range sortedIDs(d.removed) {
		dst = append(dst, id[:]...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.producers)))
	at := 0
	for _, id := range sortedIDs(d.producers) {
		c := d.producers[id]
		dst = append(dst, id[:]...)
		dst = binary.AppendUvarint(dst, uint64(d.clock-c.last)) //nolint:gosec // never negative
		if dst = binary.AppendUvarint(dst, c.low); c.low > 0 {
			dst, at = c.appendLanes(dst, at, index)
		}
	}
	return dst
}

// appendLanes returns dst and the last index.
func (c *change) appendLanes(
	dst []byte, at int, index func(Lane) (int, bool),
) ([]byte, int) {
	c.shorten()
	dst = binary.AppendUvarint(dst, uint64(len(c.lanes)))
	before := c.low
	for _, l := range c.lanes {
		step := l.number - before
		before = l.number
		if l.lane == laneOfNumber(l.number) {
			dst = binary.AppendUvarint(dst, step<<2|laneUnordered)
			continue
		}
		if index != nil {
			if i, ok := index(l.lane); ok {
				dst, at = appendIndex(dst, step, i-at), i
				continue
			}
		}
		dst = binary.AppendUvarint(dst, step<<2|laneInFull)
		dst = append(dst, l.lane[:]...)
	}
	return dst, at
}

func appendIndex(dst []byte, step uint64, further int) []byte {
	if step == 1 && further > 0 {
		return binary.AppendUvarint(dst, uint64(further-1)<<2|laneBehind)
	}
	dst = binary.AppendUvarint(dst, step<<2|laneByIndex)
	return binary.AppendVarint(dst, int64(further))
}

// Lanes calls visit with each lane in the change except those of unordered units. A lane may come
// several times.
func (d *Delta) Lanes(visit func(Lane)) {
	for _, c := range d.producers {
		for _, l := range c.lanes {
			if l.lane != laneOfNumber(l.number) {
				visit(l.lane)
			}
		}
	}
}

// ErrDeltaSyntax is returned for bytes that are not the change of a filter's state.
var ErrDeltaSyntax = errors.New("not the change of a filter's state")

// UnmarshalBinary reads the bytes of AppendBinary. Anything else is an error that wraps
// ErrDeltaSyntax.
func (d *Delta) UnmarshalBinary(text []byte) error {
	read, err := ParseDelta(text, nil)
	if err == nil {
		*d = *read
	}
	return err
}

// ParseDelta reads the bytes of AppendIndexed. lane returns the lane of an index, and false for an
// unknown index. Anything else is an error that wraps ErrDeltaSyntax.
func ParseDelta(text []byte, lane func(index int) (Lane, bool)) (*Delta, error) {
	d := new(Delta)
	if len(text) == 0 {
		return d, nil
	}
	r := deltaReader{stateReader: stateReader{rest: text}, lane: lane}
	r.version(deltaVersion, deltaVersion)
	d.some = true
	d.clock = int64(r.number(maxClock))    //nolint:gosec // at most maxClock
	d.arrival = int64(r.number(MaxNumber)) //nolint:gosec // at most MaxNumber
	r.ids(func(id ProducerID) { d.remove(id) })
	r.ids(func(id ProducerID) {
		*d.change(id) = *r.change(d.clock)
	})
	if len(r.rest) > 0 {
		r.fail("bytes behind the end")
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDeltaSyntax, r.err)
	}
	return d, nil
}

// deltaReader reads a Delta; after the first error it returns zeros.
type deltaReader struct {
	stateReader
	lane func(index int) (Lane, bool)
	at   int64 // the last index
}

// ids reads a number of producers and calls visit with each one's id, in their order.
func (r *deltaReader) ids(visit func(ProducerID)) {
	var before ProducerID
	for i := range r.number(uint64(len(r.rest))) {
		var id ProducerID
		copy(id[:], r.bytes(len(id)))
		if i > 0 && compareIDs(before, id) >= 0 {
			r.fail("producers out of order")
		}
		if r.err != nil {
			return
		}
		visit(id)
		before = id
	}
}

func (r *deltaReader) change(clock int64) *change {
	idle := r.number(uint64(clock))         //nolint:gosec // never negative
	c := &change{last: clock - int64(idle)} //nolint:gosec // at most clock
	if c.low = r.number(MaxNumber); c.low == 0 {
		return c
	}
	before := c.low
	for range r.number(uint64(len(r.rest))) {
		l := r.laneState(before)
		if l.number-c.low > Window || l.number > MaxNumber {
			r.fail("a lane's number is too high")
		}
		if r.err != nil {
			return c
		}
		c.lanes = append(c.lanes, l)
		before = l.number
	}
	c.again = true // for all that is known
	c.tidy = len(c.lanes)
	return c
}

// maxIndex is the highest index of a lane.
const maxIndex = 1<<31 - 1

// laneState reads a lane and its number; before is the number before.
func (r *deltaReader) laneState(before uint64) laneState {
	head := r.number(max(Window, maxIndex)<<2 | 3)
	l := laneState{number: before + head>>2}
	switch head & 3 {
	case laneInFull:
		copy(l.lane[:], r.bytes(len(l.lane)))
	case laneUnordered:
		l.lane = laneOfNumber(l.number)
	case laneByIndex:
		further, n := binary.Varint(r.rest)
		if n <= 0 || further > maxIndex || further < -maxIndex {
			r.fail("a lane's index is out of its range")
			return l
		}
		r.rest = r.rest[n:]
		l.lane = r.indexed(further)
	case laneBehind:
		l.number = before + 1
		l.lane = r.indexed(int64(head>>2) + 1) //nolint:gosec // at most maxIndex
	}
	return l
}

// indexed returns the lane at the previous index plus further.
func (r *deltaReader) indexed(further int64) Lane {
	if r.lane == nil {
		r.fail("a lane has an index, and there is nothing with indices")
		return Lane{}
	}
	if r.at += further; r.at < 0 || r.at > maxIndex {
		r.fail("a lane's index is out of its range")
		return Lane{}
	}
	lane, ok := r.lane(int(r.at))
	if !ok {
		r.fail(fmt.Sprintf("no lane has the index %d", r.at))
	}
	return lane
}

// sortedIDs returns the keys in their order.
func sortedIDs[V any](of map[ProducerID]V) []ProducerID {
	ids := make([]ProducerID, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}
