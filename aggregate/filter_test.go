package aggregate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
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
			{runA, 1, 1, laneX, aggregate.VerdictFresh},
			{runA, 2, 2, laneX, aggregate.VerdictFresh},
			{runA, 9, 3, laneX, aggregate.VerdictFresh},
		}},
		{"a retry", []step{
			{runA, 1, 1, laneX, aggregate.VerdictFresh},
			{runA, 1, 1, laneX, aggregate.VerdictDouble},
			{runA, 1, 1, laneX, aggregate.VerdictDouble},
		}},
		{"a retry behind the next unit of its lane", []step{
			{runA, 1, 1, laneX, aggregate.VerdictFresh},
			{runA, 2, 1, laneX, aggregate.VerdictFresh},
			{runA, 1, 1, laneX, aggregate.VerdictDouble},
			{runA, 2, 1, laneX, aggregate.VerdictDouble},
		}},
		{"given up, and stored after the lane went on", []step{
			{runA, 3, 1, laneX, aggregate.VerdictFresh},
			{runA, 2, 1, laneX, aggregate.VerdictDouble},
		}},
		{"lanes have their own order", []step{
			{runA, 2, 1, laneX, aggregate.VerdictFresh},
			{runA, 1, 1, laneY, aggregate.VerdictFresh},
			{runA, 1, 1, laneY, aggregate.VerdictDouble},
			{runA, 2, 1, laneX, aggregate.VerdictDouble},
		}},
		{"below the mark, in a lane that is not kept", []step{
			{runA, 1, 1, laneX, aggregate.VerdictFresh},
			{runA, 3, 2, laneY, aggregate.VerdictFresh},
			{runA, 1, 1, laneX, aggregate.VerdictDouble},
			{runA, 2, 1, laneX, aggregate.VerdictFresh}, // at the mark
		}},
		{"an old mark does not lower it", []step{
			{runA, 10, 9, laneX, aggregate.VerdictFresh},
			{runA, 9, 3, laneY, aggregate.VerdictFresh},
			{runA, 8, 3, laneY, aggregate.VerdictDouble},
		}},
		{"numbers of runs are not compared", []step{
			{runA, 10, 10, laneX, aggregate.VerdictFresh},
			{runB, 1, 1, laneX, aggregate.VerdictFresh},
			{runB, 1, 1, laneX, aggregate.VerdictDouble},
			{runA, 11, 11, laneX, aggregate.VerdictFresh},
		}},
		{"a mark above the number", []step{
			{runA, 1, 2, laneX, aggregate.VerdictMalformed},
			{runA, 1, 2, laneX, aggregate.VerdictMalformed}, // not remembered
			{runA, 1, 1, laneX, aggregate.VerdictFresh},     // nor its mark
		}},
		{"zeros", []step{
			{runA, 0, 0, laneX, aggregate.VerdictMalformed},
			{runA, 1, 0, laneX, aggregate.VerdictMalformed},
			{runA, 1 << 63, 1 << 63, laneX, aggregate.VerdictMalformed},
		}},
		{"the window", []step{
			{runA, 1 + aggregate.Window, 1, laneX, aggregate.VerdictFresh},
			{runA, 2 + aggregate.Window, 1, laneX, aggregate.VerdictMalformed},
			{runA, 2 + aggregate.Window, 2, laneX, aggregate.VerdictFresh},
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
	back := new(aggregate.Filter)
	if err := back.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestDeliver(t *testing.T) {
	for verdict, want := range map[aggregate.Verdict]bool{
		aggregate.VerdictFresh: true, aggregate.VerdictDouble: false, aggregate.VerdictMalformed: true, aggregate.VerdictUnfiltered: true,
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
		{5, 1, aggregate.VerdictFresh},
		{2, 1, aggregate.VerdictFresh},
		{3, 1, aggregate.VerdictFresh},
		{2, 1, aggregate.VerdictDouble},
		{6, 4, aggregate.VerdictFresh},
		{3, 1, aggregate.VerdictDouble},
		{5, 1, aggregate.VerdictDouble},
		{4, 1, aggregate.VerdictFresh},
		{1, 1, aggregate.VerdictDouble}, // below the mark
	} {
		unit := aggregate.Unit{Producer: runA, Number: s.number, Low: s.low, Unordered: true}
		if got := f.Admit(unit, unit.Lane(record), at(0)); got != s.want {
			t.Errorf("step %d: got %d, want %d", i, got, s.want)
		}
		f = reloaded(t, f)
	}
}

// ticks advances the filter in steps that count in full.
func ticks(f *aggregate.Filter, from, to float64) {
	for m := from; m < to; m++ {
		f.Advance(at(m))
	}
	f.Advance(at(to))
}

// A producer is forgotten 4H of the filter's clock after its last record, its doubles' included.
func TestForgetting(t *testing.T) {
	unit := aggregate.Unit{Producer: runA, Number: 1, Low: 1}
	other := aggregate.Unit{Producer: runB, Number: 1, Low: 1}
	for _, c := range []struct {
		name   string
		before []float64 // minutes at which the unit comes
		until  float64
		want   aggregate.Verdict
	}{
		{"just before 4H", []float64{0}, 19.9, aggregate.VerdictDouble},
		{"at 4H", []float64{0}, 20, aggregate.VerdictDouble},
		{"after 5H", []float64{0}, 25.1, aggregate.VerdictFresh},
		{"kept by a double", []float64{0, 18}, 37.9, aggregate.VerdictDouble},
		{"clock that steps back", []float64{18, 0}, 37.9, aggregate.VerdictDouble},
	} {
		for _, last := range []func(f *aggregate.Filter){
			func(f *aggregate.Filter) { f.Advance(at(c.until)) },
			func(f *aggregate.Filter) { f.Admit(other, laneY, at(c.until)) },
		} {
			f, now := &aggregate.Filter{}, 0.0
			for _, minutes := range c.before {
				ticks(f, now, minutes)
				f.Admit(unit, laneX, at(minutes))
				now = max(now, minutes)
			}
			f = reloaded(t, f)
			ticks(f, now, c.until-0.5)
			last(f)
			if got := f.Admit(unit, laneX, at(c.until)); got != c.want {
				t.Errorf("%s: got %d, want %d", c.name, got, c.want)
			}
		}
	}
	t.Run("H of a second", func(t *testing.T) {
		seam.SetH(t, time.Second)
		f := new(aggregate.Filter)
		f.Admit(unit, laneX, at(0))
		for i := range 40 {
			f.Advance(at(0).Add(time.Duration(i+1) * 200 * time.Millisecond))
		}
		if f.Admit(unit, laneX, at(0.2)) != aggregate.VerdictFresh {
			t.Error("H of a second has not forgotten after eight")
		}
	})
	f := new(aggregate.Filter)
	f.Admit(unit, laneX, time.Time{})
	f.Advance(time.Time{})
	if f.Admit(unit, laneX, time.Time{}) != aggregate.VerdictDouble {
		t.Error("forgotten though no arrival was known")
	}
}

// Copies of a unit lie at most 3H apart. A server's clock that steps forward between them, several
// times and by any amount, makes the filter forget none; and a record a day counts as a minute.
func TestClockStepsForgetNobody(t *testing.T) {
	unit := aggregate.Unit{Producer: runA, Number: 1, Low: 1}
	for _, step := range []float64{15, 60, 24 * 60, 365 * 24 * 60} {
		for steps := range 6 {
			f := &aggregate.Filter{}
			f.Admit(unit, laneX, at(0))
			ahead := 0.0
			for m := 0.0; m <= 15; m += 0.5 {
				if m > 1 && int(m) == int(m+0.5) && int(m) <= steps+1 {
					ahead += step
				}
				f.Advance(at(m + ahead))
				f = reloaded(t, f)
			}
			if f.Admit(unit, laneX, at(15+ahead)) != aggregate.VerdictDouble {
				t.Errorf("%d steps of %v minutes: the unit is fresh again", steps, step)
			}
			if most := float64(15 + steps); f.Elapsed().Minutes() > most {
				t.Errorf("%d steps of %v minutes: counted %v", steps, step, f.Elapsed())
			}
		}
	}
	f := &aggregate.Filter{}
	f.Admit(unit, laneX, at(0))
	for day := range 19 {
		f.Advance(at(float64(day+1) * 24 * 60))
	}
	if f.Elapsed() != 19*time.Minute || f.Admit(unit, laneX, at(19*24*60)) != aggregate.VerdictDouble {
		t.Errorf("a record a day for 19 days: counted %v", f.Elapsed())
	}
	if f.Remembers() != 4*aggregate.H {
		t.Errorf("remembers %v", f.Remembers())
	}
}

// Forgotten producers leave no state: it is that of a filter that only knows the time.
func TestForgettingFreesTheState(t *testing.T) {
	f := &aggregate.Filter{}
	for i := range 1000 {
		unit := aggregate.Unit{Producer: aggregate.ProducerID{byte(i), byte(i >> 8)}, Number: 5, Low: 1}
		f.Admit(unit, laneX, at(0))
	}
	ticks(f, 0, 26)
	fresh := &aggregate.Filter{}
	ticks(fresh, 0, 26)
	got, _ := f.MarshalText()
	if want, _ := fresh.MarshalText(); string(got) != string(want) || !f.Empty() {
		t.Errorf("a state of %d characters", len(got))
	}
}

// No stream of units makes the filter exceed its limits, and units without room are delivered.
func TestFilterIsBounded(t *testing.T) {
	t.Run("producers", func(t *testing.T) {
		f := &aggregate.Filter{}
		admit := func(i int, minutes float64) aggregate.Verdict {
			id := aggregate.ProducerID{byte(i), byte(i >> 8), byte(i >> 16)}
			return f.Admit(aggregate.Unit{Producer: id, Number: 1, Low: 1}, laneX, at(minutes))
		}
		for i := range aggregate.MaxProducers {
			if got := admit(i, 0); got != aggregate.VerdictFresh {
				t.Fatalf("producer %d: %d", i, got)
			}
		}
		if got := admit(aggregate.MaxProducers, 0); got != aggregate.VerdictUnfiltered {
			t.Errorf("one too many: %d", got)
		}
		if got := admit(7, 0); got != aggregate.VerdictDouble {
			t.Errorf("a producer that is known: %d", got)
		}
		f = reloaded(t, f)
		if got := admit(aggregate.MaxProducers, 0.9); got != aggregate.VerdictUnfiltered {
			t.Errorf("one too many, with the others in use: %d", got)
		}
		if got := admit(7, 0.9); got != aggregate.VerdictDouble {
			t.Errorf("a producer that is known: %d", got)
		}
		if got := admit(aggregate.MaxProducers, 2); got != aggregate.VerdictFresh {
			t.Errorf("with the others silent: %d", got)
		}
		if got := admit(7, 2); got != aggregate.VerdictDouble || f.Counts.Evicted == 0 {
			t.Errorf("the one that was not silent: %d, evicted %d", got, f.Counts.Evicted)
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
		if counts[aggregate.VerdictMalformed] < aggregate.Window/2 || counts[aggregate.VerdictDouble] > 0 {
			t.Errorf("verdicts %v", counts)
		}
		state, _ := f.MarshalBinary()
		if len(state) > 100 {
			t.Errorf("a broken producer has a state of %d bytes", len(state))
		}
		good := aggregate.Unit{Producer: runB, Number: 1, Low: 1}
		f = reloaded(t, f)
		if f.Admit(aggregate.Unit{Producer: runA, Number: 9, Low: 9}, laneX, at(0)) != aggregate.VerdictMalformed ||
			f.Admit(good, laneX, at(0)) != aggregate.VerdictFresh || f.Admit(good, laneX, at(0)) != aggregate.VerdictDouble {
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
			if got := admit(n + 1); got != aggregate.VerdictFresh {
				t.Fatalf("unit %d: %d", n+1, got)
			}
		}
		f = reloaded(t, f)
		for n := range uint64(2 * aggregate.Window) {
			if got := admit(n + 1); got != aggregate.VerdictDouble {
				t.Fatalf("unit %d again: %d", n+1, got)
			}
		}
	})
	t.Run("lanes that are left make room", func(t *testing.T) {
		f := &aggregate.Filter{}
		admit := func(run aggregate.ProducerID, n, low uint64, minutes float64) {
			unit := aggregate.Unit{Producer: run, Number: n, Low: low, Unordered: true}
			if got := f.Admit(unit, unit.Lane(aggregate.Record{}), at(minutes)); got != aggregate.VerdictFresh {
				t.Fatalf("unit %d: %d", n, got)
			}
		}
		for n := range uint64(aggregate.MaxLanes + 10_000) { // left behind by the mark
			admit(runA, n+1, n+1, 0)
		}
		for n := range uint64(aggregate.MaxLanes + 10_000) { // one lane, again and again
			unit := aggregate.Unit{Producer: runB, Number: n + 1, Low: n + 1}
			if got := f.Admit(unit, laneX, at(0)); got != aggregate.VerdictFresh {
				t.Fatalf("unit %d of a lane: %d", n, got)
			}
		}
		for i := range 6 { // silent for a minute, or soon
			for n := range uint64(aggregate.Window) {
				admit(aggregate.ProducerID{9, byte(i)}, n+1, 1, 2+1.1*float64(i))
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
				case aggregate.VerdictUnfiltered:
					unfiltered++
				case aggregate.VerdictFresh:
				default:
					t.Fatal("neither fresh nor unfiltered")
				}
			}
		}
		if want := 5*aggregate.Window - aggregate.MaxLanes; unfiltered != want {
			t.Errorf("%d unfiltered, want %d", unfiltered, want)
		}
		f = reloaded(t, f)
		if state, _ := f.MarshalBinary(); len(state) > aggregate.MaxStateSize {
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

// A child's filter begins with its parents' states, and shares no memory with them.
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
		if f.Admit(unit(runB, 1, 1), laneX, at(10.5)) != aggregate.VerdictDouble {
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
		{unit(runA, 2, 1), laneX, aggregate.VerdictDouble}, // below right's mark
		{unit(runA, 4, 1), laneX, aggregate.VerdictDouble}, // left's lane
		{unit(runA, 6, 3), laneY, aggregate.VerdictDouble}, // right's is the higher one
		{unit(runA, 5, 3), laneY, aggregate.VerdictDouble},
		{unit(runB, 1, 1), laneX, aggregate.VerdictDouble},
		{unit(runA, 5, 3), laneX, aggregate.VerdictFresh},
		{unit(runA, 7, 3), laneY, aggregate.VerdictFresh},
		{unit(runB, 2, 2), laneX, aggregate.VerdictFresh},
	} {
		if got := child.Admit(c.unit, c.lane, at(1)); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.unit, got, c.want)
		}
	}
	if after, _ := left.MarshalText(); string(after) != string(before) {
		t.Error("the child has changed its parent")
	}
	if left.Admit(unit(runA, 5, 3), laneX, at(1)) != aggregate.VerdictFresh {
		t.Error("the parent has learnt from its child")
	}
	empty, _ := aggregate.Union().MarshalText()
	if zero, _ := new(aggregate.Filter).MarshalText(); string(empty) != string(zero) {
		t.Errorf("the union of nothing is %s, not %s", empty, zero)
	}
	clone := left.Clone()
	clone.Admit(unit(runA, 9, 9), laneX, at(1))
	if left.Counts == clone.Counts || left.Admit(unit(runA, 9, 9), laneX, at(1)) != aggregate.VerdictFresh {
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

// The clocks of two parents count different steps. A child remembers each producer for as long as
// the parent would have that remembers it longer.
func TestUnionKeepsAges(t *testing.T) {
	unit := func(run aggregate.ProducerID) aggregate.Unit {
		return aggregate.Unit{Producer: run, Number: 1, Low: 1}
	}
	busy, idle := &aggregate.Filter{}, &aggregate.Filter{}
	idle.Admit(unit(runB), laneX, at(0))
	idle.Advance(at(300)) // 1 minute of its clock
	ticks(busy, 0, 300)
	busy.Admit(unit(runA), laneX, at(300))
	ticks(busy, 300, 310)
	idle.Admit(unit(runA), laneY, at(308)) // 9 minutes later by one clock, 1 by the other
	idle.Advance(at(310))
	for _, f := range []*aggregate.Filter{aggregate.Union(busy, idle), aggregate.Union(idle, busy)} {
		f = reloaded(t, f)
		if f.Elapsed() != busy.Elapsed() {
			t.Errorf("the clock is at %v, want %v", f.Elapsed(), busy.Elapsed())
		}
		until := 310.0 + 18 // runB is 3 minutes old at 310, runA 1
		ticks(f, 310, until-2)
		if f.Clone().Admit(unit(runB), laneX, at(until-2)) != aggregate.VerdictDouble {
			t.Error("the idle parent's producer is forgotten early")
		}
		ticks(f, until-2, until)
		if f.Admit(unit(runA), laneX, at(until)) != aggregate.VerdictDouble {
			t.Error("the producer of both is forgotten early")
		}
		ticks(f, until, until+30)
		if !f.Empty() {
			t.Error("nothing is ever forgotten")
		}
	}
}

// The largest state is within its limit, and so is the union with another one.
func TestLargestState(t *testing.T) {
	largest := func(first byte, producers int) *aggregate.Filter {
		f := &aggregate.Filter{}
		for i := range producers {
			unit := aggregate.Unit{
				Producer: aggregate.ProducerID{byte(i), byte(i >> 8), byte(i >> 16), first},
				Number:   aggregate.MaxNumber, Low: aggregate.MaxNumber - aggregate.Window,
			}
			if f.Admit(unit, laneX, at(0)) != aggregate.VerdictFresh {
				t.Fatalf("producer %d", i)
			}
		}
		ticks(f, 0, 20)
		return f
	}
	full := largest(1, aggregate.MaxProducers)
	for _, f := range []*aggregate.Filter{full, aggregate.Union(full, largest(2, 1000))} {
		state, _ := f.MarshalBinary()
		if len(state) > aggregate.MaxStateSize || len(state) < aggregate.MaxStateSize*8/10 {
			t.Errorf("a state of %d bytes, at most %d", len(state), aggregate.MaxStateSize)
		}
		if err := new(aggregate.Filter).UnmarshalBinary(state); err != nil {
			t.Error(err)
		}
	}
}
