package aggregate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The encoded state of a filter, which sinks store in their commits. Integers are varints.
// Producers are sorted by id, lanes by (number, lane), and lanes that can change no verdict are
// left out, so equal states have equal bytes.
//
//	2                                       the version
//	clock                                   in milliseconds
//	arrival                                 the latest one, milliseconds since 1970
//	producers
//	  id (16 bytes), clock - last, low      low is 0 for a broken producer, without lanes
//	  lanes
//	    (number - the number before) << 1 | unordered     the first one's before is low
//	    lane (16 bytes), unless unordered
//
// Version 1 had no clock: its clock is then the latest arrival.
const (
	stateVersion   = 2
	arrivalVersion = 1
)

// ErrStateSyntax is returned for bytes or a text that is not a filter's state.
var ErrStateSyntax = errors.New("not the state of a filter")

// AppendBinary appends the filter's state to dst; the error is nil. Counts are no part of it. The
// state has about 22 bytes for a producer and 17 for a lane, at most MaxStateSize in all.
func (f *Filter) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, stateVersion)
	dst = binary.AppendUvarint(dst, uint64(f.clock))   //nolint:gosec // never negative
	dst = binary.AppendUvarint(dst, uint64(f.arrival)) //nolint:gosec // never negative
	ids := sortedIDs(f.producers)
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	var lanes []laneState
	for _, id := range ids {
		p := f.producers[id]
		dst = append(dst, id[:]...)
		dst = binary.AppendUvarint(dst, uint64(f.clock-p.last)) //nolint:gosec // never negative
		if lanes = p.appendLanes(lanes[:0]); p.low == 0 || len(lanes) > Window+1 {
			dst = append(dst, 0) // broken, though no prune has seen it yet
			continue
		}
		dst = binary.AppendUvarint(dst, p.low)
		dst = appendLaneStates(dst, p.low, lanes)
	}
	return dst, nil
}

func appendLaneStates(dst []byte, low uint64, lanes []laneState) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(lanes)))
	before := low
	for _, l := range lanes {
		step := (l.number - before) << 1
		before = l.number
		if l.lane == laneOfNumber(l.number) {
			dst = binary.AppendUvarint(dst, step|1)
			continue
		}
		dst = binary.AppendUvarint(dst, step)
		dst = append(dst, l.lane[:]...)
	}
	return dst
}

type laneState struct {
	number uint64
	lane   Lane
}

func (l laneState) compare(other laneState) int {
	if l.number != other.number {
		return cmp.Compare(l.number, other.number)
	}
	return bytes.Compare(l.lane[:], other.lane[:])
}

// appendLanes appends the lanes whose number is at or above low, sorted.
func (p *producer) appendLanes(dst []laneState) []laneState {
	for lane, number := range p.lanes {
		if number >= p.low {
			dst = append(dst, laneState{number, lane})
		}
	}
	slices.SortFunc(dst, laneState.compare)
	return dst
}

// MarshalBinary returns the filter's state; the error is nil.
func (f *Filter) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// MarshalText returns the filter's state in base64, so that JSON has it as a string; the error
// is nil.
func (f *Filter) MarshalText() ([]byte, error) {
	state, err := f.AppendBinary(nil)
	return base64.StdEncoding.AppendEncode(nil, state), err
}

// UnmarshalText takes the state that MarshalText wrote. See UnmarshalBinary.
func (f *Filter) UnmarshalText(text []byte) error {
	state, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStateSyntax, err)
	case bytes.ContainsAny(text, "\r\n"):
		return fmt.Errorf("%w: a line end", ErrStateSyntax) // base64 skips them
	}
	return f.UnmarshalBinary(state)
}

// UnmarshalBinary replaces the filter's state by one that AppendBinary wrote; Counts stay.
// It accepts only bytes that AppendBinary writes now, or wrote in version 1. Anything else is an
// error that wraps ErrStateSyntax and leaves the filter unchanged. A filter that tracks its changes
// starts anew.
func (f *Filter) UnmarshalBinary(state []byte) error {
	r := stateReader{rest: state}
	version := r.version(arrivalVersion, stateVersion)
	read := Filter{producers: map[ProducerID]*producer{}}
	if version != arrivalVersion {
		read.clock = int64(r.number(maxClock)) //nolint:gosec // at most maxClock
	}
	read.arrival = int64(r.number(MaxNumber)) //nolint:gosec // at most MaxNumber
	if version == arrivalVersion {
		read.clock = min(read.arrival, maxClock)
	}
	var before ProducerID
	for i := range r.number(MaxProducers) {
		var id ProducerID
		copy(id[:], r.bytes(len(id)))
		if i > 0 && bytes.Compare(before[:], id[:]) >= 0 {
			r.fail("producers out of order")
		}
		p := r.producer(read.clock)
		if r.err != nil {
			break
		}
		read.producers[id] = p
		before = id
		if read.lanes += len(p.lanes); read.lanes > MaxLanes {
			r.fail("too many lanes")
			break
		}
	}
	if len(r.rest) > 0 {
		r.fail("bytes behind the end")
	}
	if r.err != nil {
		return r.err
	}
	f.producers, f.lanes = read.producers, read.lanes
	f.clock, f.arrival, f.fullUntil = read.clock, read.arrival, 0
	if f.changes != nil {
		f.Track()
	}
	return nil
}

// stateReader reads a state; after the first error it returns zeros.
type stateReader struct {
	rest []byte
	err  error
}

func (r *stateReader) fail(why string) {
	if r.err == nil {
		r.err, r.rest = fmt.Errorf("%w: %s", ErrStateSyntax, why), nil
	}
}

// version reads the version's byte, which is in [lowest, highest].
func (r *stateReader) version(lowest, highest byte) byte {
	b := r.bytes(1)
	if r.err == nil && (b[0] < lowest || b[0] > highest) {
		r.fail(fmt.Sprintf("version %d, this program knows %d to %d", b[0], lowest, highest))
	}
	if r.err != nil {
		return 0
	}
	return b[0]
}

func (r *stateReader) bytes(n int) []byte {
	if len(r.rest) < n {
		r.fail("it ends too early")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// number reads a varint in its shortest form that is at most limit.
func (r *stateReader) number(limit uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n != sizeVarint(v) || v > limit {
		r.fail("a number is out of its range")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *stateReader) producer(clock int64) *producer {
	idle := r.number(uint64(clock))                          //nolint:gosec // never negative
	p := newProducer(r.number(MaxNumber), clock-int64(idle)) //nolint:gosec // at most clock
	if p.low == 0 {
		p.lanes = nil
		return p
	}
	last := laneState{number: p.low}
	for i := range r.number(Window + 1) {
		step := r.number(2*Window + 1)
		l := laneState{number: last.number + step>>1}
		if step&1 == 1 {
			l.lane = laneOfNumber(l.number)
		} else {
			copy(l.lane[:], r.bytes(len(l.lane)))
			if l.lane == laneOfNumber(l.number) {
				r.fail("a lane in the longer of two forms")
			}
		}
		switch {
		case l.number-p.low > Window || l.number > MaxNumber:
			r.fail("a lane's number is too high")
		case i > 0 && last.compare(l) >= 0:
			r.fail("lanes out of order")
		}
		if r.err != nil {
			return p
		}
		if _, twice := p.lanes[l.lane]; twice {
			r.fail("a lane occurs twice")
			return p
		}
		p.lanes[l.lane] = l.number
		last = l
	}
	p.pruneAt = 2*len(p.lanes) + minPrune
	return p
}
