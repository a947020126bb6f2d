package aggregate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

var (
	runA, runB = aggregate.ProducerID{1}, aggregate.ProducerID{2}
	laneX      = aggregate.LaneOf("x", "")
	laneY      = aggregate.LaneOf("y", "")
)

// at is a time of so many minutes.
func at(minutes float64) time.Time {
	return time.UnixMilli(1_700_000_000_000).Add(time.Duration(minutes * float64(time.Minute)))
}

func TestAdmit(t *testing.T) {
	type step struct {
		run         aggregate.ProducerID
		number, low uint64
		lane        aggregate.Lane
		want        aggregate.Verdict
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"units in order", []step{
			{runA, 1, 1, laneX, aggregate.Fresh},
			{runA, 2, 2, laneX, aggregate.Fresh},
			{runA, 9, 3, laneX, aggregate.Fresh},
		}},
		{"a retry", []step{
			{runA, 1, 1, laneX, aggregate.Fresh},
			{runA, 1, 1, laneX, aggregate.Double},
			{runA, 1, 1, laneX, aggregate.Double},
		}},
		{"a retry behind the next unit of its lane", []step{
			{runA, 1, 1, laneX, aggregate.Fresh},
			{runA, 2, 1, laneX, aggregate.Fresh},
			{runA, 1, 1, laneX, aggregate.Double},
			{runA, 2, 1, laneX, aggregate.Double},
		}},
		{"given up, and stored after the lane went on", []step{
			{runA, 3, 1, laneX, aggregate.Fresh},
			{runA, 2, 1, laneX, aggregate.Double},
		}},
		{"lanes have their own order", []step{
			{runA, 2, 1, laneX, aggregate.Fresh},
			{runA, 1, 1, laneY, aggregate.Fresh},
			{runA, 1, 1, laneY, aggregate.Double},
			{runA, 2, 1, laneX, aggregate.Double},
		}},
		{"below the mark, in a lane that is not kept", []step{
			{runA, 1, 1, laneX, aggregate.Fresh},
			{runA, 3, 2, laneY, aggregate.Fresh},
			{runA, 1, 1, laneX, aggregate.Double},
			{runA, 2, 1, laneX, aggregate.Fresh}, // at the mark
		}},
		{"an old mark does not lower it", []step{
			{runA, 10, 9, laneX, aggregate.Fresh},
			{runA, 9, 3, laneY, aggregate.Fresh},
			{runA, 8, 3, laneY, aggregate.Double},
		}},
		{"numbers of runs are not compared", []step{
			{runA, 10, 10, laneX, aggregate.Fresh},
			{runB, 1, 1, laneX, aggregate.Fresh},
			{runB, 1, 1, laneX, aggregate.Double},
			{runA, 11, 11, laneX, aggregate.Fresh},
		}},
		{"a mark above the number", []step{
			{runA, 1, 2, laneX, aggregate.Malformed},
			{runA, 1, 2, laneX, aggregate.Malformed}, // not remembered
			{runA, 1, 1, laneX, aggregate.Fresh},     // nor its mark
		}},
		{"zeros", []step{
			{runA, 0, 0, laneX, aggregate.Malformed},
			{runA, 1, 0, laneX, aggregate.Malformed},
			{runA, 1 << 63, 1 << 63, laneX, aggregate.Malformed},
		}},
		{"the window", []step{
			{runA, 1 + aggregate.Window, 1, laneX, aggregate.Fresh},
			{runA, 2 + aggregate.Window, 1, laneX, aggregate.Malformed},
			{runA, 2 + aggregate.Window, 2, laneX, aggregate.Fresh},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, reload := range []bool{false, true} {
				f := &aggregate.Filter{}
				for i, s := range c.steps {
					unit := aggregate.Unit{Producer: s.run, Number: s.number, Low: s.low}
					if got := f.Admit(unit, s.lane, at(0)); got != s.want {
						t.Errorf("step %d: got %d, want %d (reload %v)", i, got, s.want, reload)
					}
					if reload {
						f = reloaded(t, f)
					}
				}
			}
		})
	}
}

// reloaded is the filter after a restart from its state.
func reloaded(t testing.TB, f *aggregate.Filter) *aggregate.Filter {
	t.Helper()
	state, err := f.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	back := &aggregate.Filter{H: f.H}
	if err := back.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestDeliver(t *testing.T) {
	for verdict, want := range map[aggregate.Verdict]bool{
		aggregate.Fresh: true, aggregate.Double: false, aggregate.Malformed: true, aggregate.Unfiltered: true,
	} {
		if verdict.Deliver() != want {
			t.Errorf("verdict %d: deliver is %v", verdict, verdict.Deliver())
		}
	}
}

// Without an order, each unit counts for itself.
func TestAdmitUnordered(t *testing.T) {
	f := &aggregate.Filter{}
	record := aggregate.Record{PartitionKey: "x"}
	for i, s := range []struct {
		number, low uint64
		want        aggregate.Verdict
	}{
		{5, 1, aggregate.Fresh},
		{2, 1, aggregate.Fresh},
		{3, 1, aggregate.Fresh},
		{2, 1, aggregate.Double},
		{6, 4, aggregate.Fresh},
		{3, 1, aggregate.Double},
		{5, 1, aggregate.Double},
		{4, 1, aggregate.Fresh},
		{1, 1, aggregate.Double}, // below the mark
	} {
		unit := aggregate.Unit{Producer: runA, Number: s.number, Low: s.low, Unordered: true}
		if got := f.Admit(unit, unit.Lane(record), at(0)); got != s.want {
			t.Errorf("step %d: got %d, want %d", i, got, s.want)
		}
		f = reloaded(t, f)
	}
}

// A producer is forgotten when its last record is more than 2H old, its doubles' included.
func TestForgetting(t *testing.T) {
	unit := aggregate.Unit{Producer: runA, Number: 1, Low: 1}
	other := aggregate.Unit{Producer: runB, Number: 1, Low: 1}
	for _, c := range []struct {
		name    string
		before  []float64 // minutes at which the unit comes
		advance float64
		want    aggregate.Verdict
	}{
		{"just before 2H", []float64{0}, 9.9, aggregate.Double},
		{"at 2H", []float64{0}, 10, aggregate.Double},
		{"after 3H", []float64{0}, 15.1, aggregate.Fresh},
		{"kept by a double", []float64{0, 8}, 17.9, aggregate.Double},
		{"clock that steps back", []float64{8, 0}, 17.9, aggregate.Double},
	} {
		for _, advance := range []func(f *aggregate.Filter){
			func(f *aggregate.Filter) { f.Advance(at(c.advance)) },
			func(f *aggregate.Filter) { f.Admit(other, laneY, at(c.advance)) },
		} {
			f := &aggregate.Filter{}
			for _, minutes := range c.before {
				f.Admit(unit, laneX, at(minutes))
			}
			f = reloaded(t, f)
			advance(f)
			if got := f.Admit(unit, laneX, at(c.advance)); got != c.want {
				t.Errorf("%s: got %d, want %d", c.name, got, c.want)
			}
		}
	}
	f := &aggregate.Filter{H: time.Second}
	f.Admit(unit, laneX, at(0))
	f.Advance(at(0.1))
	if f.Admit(unit, laneX, at(0.1)) != aggregate.Fresh {
		t.Error("H of a second has not forgotten after six")
	}
	f = &aggregate.Filter{}
	f.Admit(unit, laneX, time.Time{})
	f.Advance(time.Time{})
	if f.Admit(unit, laneX, time.Time{}) != aggregate.Double {
		t.Error("forgotten though no arrival was known")
	}
}

// forgotten producers leave no state: it is that of a filter that only knows the time.
func TestForgettingFreesTheState(t *testing.T) {
	f := &aggregate.Filter{}
	for i := range 1000 {
		unit := aggregate.Unit{Producer: aggregate.ProducerID{byte(i), byte(i >> 8)}, Number: 5, Low: 1}
		f.Admit(unit, laneX, at(0))
	}
	f.Advance(at(16))
	fresh := &aggregate.Filter{}
	fresh.Advance(at(16))
	got, _ := f.MarshalText()
	if want, _ := fresh.MarshalText(); string(got) != string(want) {
		t.Errorf("a state of %d characters", len(got))
	}
}

// No stream of units takes more than the limits, and what does not fit is delivered.
func TestFilterIsBounded(t *testing.T) {
	t.Run("producers", func(t *testing.T) {
		f := &aggregate.Filter{}
		admit := func(i int, minutes float64) aggregate.Verdict {
			id := aggregate.ProducerID{byte(i), byte(i >> 8), byte(i >> 16)}
			return f.Admit(aggregate.Unit{Producer: id, Number: 1, Low: 1}, laneX, at(minutes))
		}
		for i := range aggregate.MaxProducers {
			if got := admit(i, 0); got != aggregate.Fresh {
				t.Fatalf("producer %d: %d", i, got)
			}
		}
		if got := admit(aggregate.MaxProducers, 0); got != aggregate.Unfiltered {
			t.Errorf("one too many: %d", got)
		}
		if got := admit(7, 0); got != aggregate.Double {
			t.Errorf("a producer that is known: %d", got)
		}
		f = reloaded(t, f)
		if got := admit(aggregate.MaxProducers, 16); got != aggregate.Fresh {
			t.Errorf("with the others forgotten: %d", got)
		}
	})
	t.Run("one number for many lanes", func(t *testing.T) {
		f := &aggregate.Filter{}
		var counts [5]int
		for i := range 3 * aggregate.Window {
			var lane aggregate.Lane
			lane[0], lane[1], lane[2], lane[3] = 1, byte(i), byte(i>>8), byte(i>>16)
			counts[f.Admit(aggregate.Unit{Producer: runA, Number: 5, Low: 1}, lane, at(0))]++
		}
		if counts[aggregate.Malformed] < aggregate.Window/2 || counts[aggregate.Double] > 0 {
			t.Errorf("verdicts %v", counts)
		}
		state, _ := f.MarshalBinary()
		if len(state) > 100 {
			t.Errorf("a broken producer has a state of %d bytes", len(state))
		}
		good := aggregate.Unit{Producer: runB, Number: 1, Low: 1}
		f = reloaded(t, f)
		if f.Admit(aggregate.Unit{Producer: runA, Number: 9, Low: 9}, laneX, at(0)) != aggregate.Malformed ||
			f.Admit(good, laneX, at(0)) != aggregate.Fresh || f.Admit(good, laneX, at(0)) != aggregate.Double {
			t.Error("a broken producer is trusted again, or has broken others")
		}
	})
	t.Run("all lanes that one producer may have", func(t *testing.T) {
		f := &aggregate.Filter{}
		admit := func(n uint64) aggregate.Verdict {
			unit := aggregate.Unit{Producer: runA, Number: n, Low: max(1, n-min(n, aggregate.Window)), Unordered: true}
			return f.Admit(unit, unit.Lane(aggregate.Record{}), at(0))
		}
		for n := range uint64(2 * aggregate.Window) {
			if got := admit(n + 1); got != aggregate.Fresh {
				t.Fatalf("unit %d: %d", n+1, got)
			}
		}
		f = reloaded(t, f)
		for n := range uint64(2 * aggregate.Window) {
			if got := admit(n + 1); got != aggregate.Double {
				t.Fatalf("unit %d again: %d", n+1, got)
			}
		}
	})
	t.Run("lanes that are left make room", func(t *testing.T) {
		f := &aggregate.Filter{}
		admit := func(n, low uint64, minutes float64) {
			unit := aggregate.Unit{Producer: runA, Number: n, Low: low, Unordered: true}
			if got := f.Admit(unit, unit.Lane(aggregate.Record{}), at(minutes)); got != aggregate.Fresh {
				t.Fatalf("unit %d: %d", n, got)
			}
		}
		for n := range uint64(aggregate.MaxLanes + 10_000) { // left behind by the mark
			admit(n+1, n+1, 0)
		}
		for n := range uint64(aggregate.MaxLanes + 10_000) { // one lane, again and again
			unit := aggregate.Unit{Producer: runB, Number: n + 1, Low: n + 1}
			if got := f.Admit(unit, laneX, at(0)); got != aggregate.Fresh {
				t.Fatalf("unit %d of a lane: %d", n, got)
			}
		}
		for i := range 6 { // forgotten
			for n := range uint64(aggregate.Window) {
				admit(n+1, 1, float64(20*(i+1)))
			}
		}
	})
	t.Run("lanes of all producers", func(t *testing.T) {
		f := &aggregate.Filter{}
		unfiltered := 0
		for p := range 5 {
			for n := range uint64(aggregate.Window) {
				unit := aggregate.Unit{Producer: aggregate.ProducerID{byte(p)}, Number: n + 1, Low: 1, Unordered: true}
				switch f.Admit(unit, unit.Lane(aggregate.Record{}), at(0)) {
				case aggregate.Unfiltered:
					unfiltered++
				case aggregate.Fresh:
				default:
					t.Fatal("neither fresh nor unfiltered")
				}
			}
		}
		if want := 5*aggregate.Window - aggregate.MaxLanes; unfiltered != want {
			t.Errorf("%d unfiltered, want %d", unfiltered, want)
		}
		f = reloaded(t, f)
		if state, _ := f.MarshalBinary(); len(state) > 6<<20 {
			t.Errorf("a state of %d bytes", len(state))
		}
		both := aggregate.Union(f, filterOf(2, 100))
		state, _ := both.MarshalBinary()
		if err := new(aggregate.Filter).UnmarshalBinary(state); err != nil {
			t.Errorf("a union of two full ones: %v", err)
		}
	})
}

// filterOf is a filter of so many full producers with ids from first on, a minute later.
func filterOf(producers int, first byte) *aggregate.Filter {
	f := &aggregate.Filter{}
	for p := range producers {
		for n := range uint64(aggregate.Window) {
			unit := aggregate.Unit{Producer: aggregate.ProducerID{first + byte(p)}, Number: n + 1, Low: 1, Unordered: true}
			f.Admit(unit, unit.Lane(aggregate.Record{}), at(1))
		}
	}
	return f
}

// A child knows what its parents knew, and shares nothing with them.
func TestUnion(t *testing.T) {
	unit := func(run aggregate.ProducerID, n, low uint64) aggregate.Unit {
		return aggregate.Unit{Producer: run, Number: n, Low: low}
	}
	left, right := &aggregate.Filter{}, &aggregate.Filter{}
	left.Admit(unit(runA, 4, 1), laneX, at(0))
	left.Admit(unit(runA, 3, 2), laneY, at(0))
	right.Admit(unit(runA, 6, 3), laneY, at(1))
	right.Admit(unit(runB, 1, 1), laneX, at(1))
	for _, f := range []*aggregate.Filter{aggregate.Union(left, right), aggregate.Union(right, left)} {
		f = reloaded(t, f) // the later one's time is the child's, in either order
		f.Advance(at(10.5))
		if f.Admit(unit(runB, 1, 1), laneX, at(10.5)) != aggregate.Double {
			t.Error("a parent's producer is forgotten")
		}
	}
	before, _ := left.MarshalText()
	child := aggregate.Union(left, nil, right)
	for _, c := range []struct {
		unit aggregate.Unit
		lane aggregate.Lane
		want aggregate.Verdict
	}{
		{unit(runA, 2, 1), laneX, aggregate.Double}, // below right's mark
		{unit(runA, 4, 1), laneX, aggregate.Double}, // left's lane
		{unit(runA, 6, 3), laneY, aggregate.Double}, // right's is the higher one
		{unit(runA, 5, 3), laneY, aggregate.Double},
		{unit(runB, 1, 1), laneX, aggregate.Double},
		{unit(runA, 5, 3), laneX, aggregate.Fresh},
		{unit(runA, 7, 3), laneY, aggregate.Fresh},
		{unit(runB, 2, 2), laneX, aggregate.Fresh},
	} {
		if got := child.Admit(c.unit, c.lane, at(1)); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.unit, got, c.want)
		}
	}
	if after, _ := left.MarshalText(); string(after) != string(before) {
		t.Error("the child has changed its parent")
	}
	if left.Admit(unit(runA, 5, 3), laneX, at(1)) != aggregate.Fresh {
		t.Error("the parent has learnt from its child")
	}
	empty, _ := aggregate.Union().MarshalText()
	if zero, _ := new(aggregate.Filter).MarshalText(); string(empty) != string(zero) {
		t.Errorf("the union of nothing is %s, not %s", empty, zero)
	}
	clone := left.Clone()
	clone.Admit(unit(runA, 9, 9), laneX, at(1))
	if left.Counts == clone.Counts || left.Admit(unit(runA, 9, 9), laneX, at(1)) != aggregate.Fresh {
		t.Error("a clone shares its state")
	}
}

// Several units in one aggregate, records before the first one, and a double among them.
func TestPass(t *testing.T) {
	var e aggregate.Encoder
	record := func(key, data string, unit aggregate.Unit) {
		r := aggregate.Record{PartitionKey: key, Data: []byte(data)}
		if unit.Number > 0 {
			r.Tags = unit.AppendTo(nil)
		}
		add(t, &e, r)
	}
	none := aggregate.Unit{}
	record("x", "without", none)
	record("x", "x1", aggregate.Unit{Producer: runA, Number: 1, Low: 1})
	record("x", "x2", none)
	record("y", "y1", aggregate.Unit{Producer: runA, Number: 2, Low: 1})
	record("y", "y2", none)
	record("z", "z1", aggregate.Unit{Producer: runA, Number: 3, Low: 4}) // malformed
	record("z", "z2", none)
	var d aggregate.Decoder
	if !d.Open(e.Seal(nil)) {
		t.Fatal("not opened")
	}
	f := &aggregate.Filter{}
	f.Admit(aggregate.Unit{Producer: runA, Number: 2, Low: 1}, laneY, at(0))
	read := func() (seen []string) {
		for sub, r := range f.Pass(&d, at(0)) {
			seen = append(seen, string(rune('0'+sub))+string(r.Data))
		}
		return seen
	}
	if got := read(); !slices.Equal(got, []string{"0without", "1x1", "2x2", "5z1", "6z2"}) {
		t.Errorf("first: %q", got)
	}
	if got := read(); !slices.Equal(got, []string{"0without", "5z1", "6z2"}) {
		t.Errorf("again: %q", got)
	}
	if want := (aggregate.Counts{Fresh: 2, Doubles: 3, Malformed: 2}); f.Counts != want {
		t.Errorf("counts %+v, want %+v", f.Counts, want)
	}
	for range f.Pass(&d, at(0)) {
		break
	}
}
