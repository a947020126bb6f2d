package consumer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/sink"
)

// meet has a filter meet the given number of units of new lanes, of runs with 5,000 each in 16
// groups.
func meet(filter *aggregate.Filter, from, units int) {
	for n := from; n < from+units; n++ {
		var id aggregate.ProducerID
		binary.BigEndian.PutUint32(id[:], uint32(n/5000*16+n%16))
		unit := aggregate.Unit{Producer: id, Number: uint64(n%5000)/16 + 1, Low: 1}
		at := time.UnixMilli(1_700_000_000_000 + int64(n))
		filter.Admit(unit, aggregate.LaneOf(fmt.Sprint(n), ""), at)
	}
}

// A mirror has the reader's state behind the page that is delivered, though the reader is a page
// ahead.
func TestMirror(t *testing.T) {
	filter := new(aggregate.Filter)
	m := newMirror(filter, false)
	s := reading{Opener: opener.Opener{Filter: filter}, mirror: m, tracks: true}
	step := func(units int, ended bool) (page, []byte) {
		meet(filter, int(filter.Counts.Fresh), units)
		return page{change: s.change(), ended: ended}, stateOf(&s)
	}
	filter.Advance(time.UnixMilli(1_700_000_000_000))
	p, _ := step(0, false)
	var quiet sink.Batch
	if err := m.batch(&quiet, &p); err != nil || quiet.State != nil || quiet.Delta != nil {
		t.Fatalf("before any unit: %+v, %v", quiet, err)
	}
	sum := new(aggregate.Filter) // of the changes, which are since an empty state
	p, want := step(20, false)
	for range 5 {
		ahead, next := step(30, false)
		var b sink.Batch
		if err := m.batch(&b, &p); err != nil {
			t.Fatal(err)
		}
		if got := b.State.Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("the state is\n%x\nwant\n%x", got, want)
		}
		delta := new(aggregate.Delta)
		if err := delta.UnmarshalBinary(b.Delta); err != nil {
			t.Fatal(err)
		}
		sum.Apply(delta)
		if got, _ := sum.MarshalBinary(); !bytes.Equal(got, want) {
			t.Fatalf("the changes make\n%x\nwant\n%x", got, want)
		}
		p, want = ahead, next
	}
	var b sink.Batch
	if err := m.batch(&b, &page{change: []byte{9}, through: runnel.End()}); err == nil {
		t.Error("a change that is none is taken")
	}
}

// A mirror of a state that the sink does not have gives no change first. At a shard's end there is
// a state even if no unit was met.
func TestMirrorOfWhatTheSinkHasNot(t *testing.T) {
	filter := new(aggregate.Filter)
	meet(filter, 0, 10)
	m := newMirror(filter, false)
	s := reading{Opener: opener.Opener{Filter: filter}, mirror: m, tracks: true}
	for n, known := range []bool{false, true} {
		p := page{change: s.change()}
		var b sink.Batch
		if err := m.batch(&b, &p); err != nil || b.Delta != nil != known || !bytes.Equal(b.State.Bytes(), stateOf(&s)) {
			t.Errorf("page %d: %+v, %v", n, b, err)
		}
	}
	filter = new(aggregate.Filter)
	m = newMirror(filter, false)
	s = reading{Opener: opener.Opener{Filter: filter}, mirror: m, tracks: true}
	var b sink.Batch
	if err := m.batch(&b, &page{change: s.change(), ended: true}); err != nil || len(b.State.Bytes()) == 0 {
		t.Errorf("at the end: %+v, %v", b, err)
	}
	if s = (reading{Opener: opener.Opener{Filter: filter}}); s.change() != nil || (*mirror)(nil).batch(&b, &page{}) != nil {
		t.Error("without a sink there is a change")
	}
}

// BenchmarkState measures the part of the reader's state in the time of a page of 500 units, in a
// filter of 51 runs with 5,000 lanes each: noting the change, and the mirror. kept=false is the
// filter alone; whole is to marshal it, as a page did before.
func BenchmarkState(b *testing.B) {
	const lanes, units = 51 * 5000, 500
	full := new(aggregate.Filter)
	meet(full, 0, lanes-units)
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("change, kept=%v", kept), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := reading{Opener: opener.Opener{Filter: full.Clone()}}
				if kept {
					s.mirror, s.tracks = newMirror(s.Filter, true), true
				}
				b.StartTimer()
				meet(s.Filter, lanes-units, units)
				var batch sink.Batch
				if err := s.mirror.batch(&batch, &page{change: s.change()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			_ = stateOf(&reading{Opener: opener.Opener{Filter: full}})
		}
	})
}

// stateOf returns the state of a reading's filter.
func stateOf(o *reading) []byte {
	state, _ := o.Filter.MarshalBinary() // it returns no error
	return state
}
