package aggregate_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/runnel-stream/runnel/aggregate"
)

// tracked is a filter that tracks its changes, and a mirror that is made of nothing but them.
type tracked struct {
	filter, mirror *aggregate.Filter
	merged, raw    *aggregate.Delta // since the last check; raw without the way through bytes
	before         []byte           // the state at the last check
}

func track(f *aggregate.Filter) *tracked {
	f.Track()
	state, _ := f.MarshalBinary()
	return &tracked{filter: f, mirror: f.Clone(), merged: new(aggregate.Delta), raw: new(aggregate.Delta), before: state}
}

// page ends a page: its change goes to the mirror and into the merged one, through bytes.
func (k *tracked) page(t *testing.T) {
	t.Helper()
	direct := k.filter.Delta()
	k.raw.Merge(direct)
	text, _ := direct.MarshalBinary()
	d := new(aggregate.Delta)
	if err := d.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	k.mirror.Apply(d)
	k.merged.Merge(d)
}

// check compares the filter's state with the mirror's, and with the state before and the merged
// change, which a sink has kept with the lanes given by index.
func (k *tracked) check(t *testing.T) {
	t.Helper()
	want, _ := k.filter.MarshalBinary()
	if got, _ := k.mirror.MarshalBinary(); !bytes.Equal(got, want) {
		t.Fatalf("the mirror is\n%x\nwant\n%x", got, want)
	}
	var lanes []aggregate.Lane
	places := map[aggregate.Lane]int{}
	k.merged.Lanes(func(l aggregate.Lane) {
		if _, known := places[l]; !known && len(lanes)%5 < 3 {
			places[l] = len(lanes)
		}
		lanes = append(lanes, l)
	})
	text := k.merged.AppendIndexed(nil, func(l aggregate.Lane) (int, bool) {
		i, known := places[l]
		return i, known
	})
	d, err := aggregate.ParseDelta(text, func(i int) (aggregate.Lane, bool) { return lanes[i], i < len(lanes) })
	if err != nil {
		t.Fatal(err)
	}
	folded := &aggregate.Filter{}
	if err := folded.UnmarshalBinary(k.before); err != nil {
		t.Fatal(err)
	}
	folded.Apply(d)
	if got, _ := folded.MarshalBinary(); !bytes.Equal(got, want) {
		t.Fatalf("the folded state is\n%x\nwant\n%x", got, want)
	}
	a, _ := k.merged.MarshalBinary()
	if b, _ := k.raw.MarshalBinary(); !bytes.Equal(a, b) {
		t.Fatalf("merged\n%x\nand through bytes\n%x", b, a)
	}
	k.merged, k.raw, k.before = new(aggregate.Delta), new(aggregate.Delta), want
}

// The changes of a filter make its state, whatever the filter meets: units in and out of order,
// marks that pass lanes, runs that are forgotten and come back, broken ones, evictions, unions.
func TestDeltasMakeTheState(t *testing.T) {
	forgotten := 0
	for seed := range uint64(30 * soak()) {
		random := rand.New(rand.NewPCG(seed, 4))
		k := track(&aggregate.Filter{})
		minutes, top := 0.0, uint64(0)
		for step := range 3000 {
			minutes += random.Float64() / 4
			switch random.IntN(300) {
			case 0:
				minutes += 30 * random.Float64()
			case 1: // a clock that steps back
				minutes -= 5 * random.Float64()
			case 2: // every producer is forgotten
				ticks(k.filter, minutes, minutes+26)
				minutes += 26
				forgotten++
			case 3: // a child, or a restart
				other := &aggregate.Filter{}
				for n := range uint64(random.IntN(20)) {
					other.Admit(aggregate.Unit{Producer: aggregate.ProducerID{byte(n % 5)}, Number: top + n + 1, Low: top + 1}, laneX, at(minutes))
				}
				k.page(t)
				k.check(t)
				k = track(aggregate.Union(reloaded(t, k.filter), other))
			case 4: // a producer with one number for many lanes
				broken := aggregate.Unit{Producer: aggregate.ProducerID{200, byte(seed)}, Number: 5, Low: 1}
				for i := range random.IntN(200) {
					k.filter.Admit(broken, aggregate.Lane{1, byte(i)}, at(minutes))
				}
			}
			top += uint64(random.IntN(3))
			number := max(1, top-min(top, uint64(random.IntN(40))))
			unit := aggregate.Unit{
				Producer: aggregate.ProducerID{byte(random.IntN(4))},
				Number:   number, Low: max(1, number-min(number, uint64(random.IntN(40)))),
				Unordered: random.IntN(3) == 0,
			}
			if random.IntN(50) == 0 {
				unit.Low = number + 1 // malformed
			}
			if random.IntN(10) == 0 {
				k.filter.Advance(at(minutes))
			} else {
				k.filter.Admit(unit, unit.Lane(aggregate.Record{PartitionKey: string(rune('a' + random.IntN(60)))}), at(minutes))
			}
			if random.IntN(20) == 0 || step == 2999 {
				k.page(t)
			}
			if random.IntN(100) == 0 || step == 2999 {
				k.page(t)
				k.check(t)
			}
		}
	}
	if forgotten == 0 {
		t.Error("no producer was forgotten")
	}
}

// A broken producer, and one that is evicted from a full filter.
func TestDeltasOfAFullFilter(t *testing.T) {
	k := track(&aggregate.Filter{})
	for i := range aggregate.Window * 5 / 2 {
		k.filter.Admit(aggregate.Unit{Producer: runB, Number: 5, Low: 1}, aggregate.Lane{1, byte(i), byte(i >> 8), byte(i >> 16)}, at(0))
	}
	k.page(t)
	k.check(t)
	for p := range 6 {
		for n := range uint64(aggregate.Window) {
			unit := aggregate.Unit{Producer: aggregate.ProducerID{byte(10 + p)}, Number: n + 1, Low: 1, Unordered: true}
			if got := k.filter.Admit(unit, unit.Lane(aggregate.Record{}), at(1.1*float64(p))); got != aggregate.VerdictFresh {
				t.Fatalf("producer %d, unit %d: %d", p, n, got)
			}
			if n%10_000 == 0 {
				k.page(t)
			}
		}
		k.page(t)
		k.check(t)
	}
	if k.filter.Counts.Evicted == 0 {
		t.Error("none was evicted")
	}
}

// A change is as large as its units are many, not as the filter's lanes are.
func TestDeltaIsSmall(t *testing.T) {
	f := filterOf(3, 1)
	f.Track()
	for n := range uint64(1000) { // one lane
		f.Admit(aggregate.Unit{Producer: runA, Number: 100_000 + n, Low: 100_000 + n}, laneX, at(2))
	}
	text, _ := f.Delta().MarshalBinary()
	if len(text) > 60 {
		t.Errorf("the change of a lane has %d bytes", len(text))
	}
	f.Advance(at(3))
	if text, _ = f.Delta().MarshalBinary(); len(text) > 14 {
		t.Errorf("no unit makes a change of %d bytes", len(text))
	}
	if new(aggregate.Filter).Delta() != nil {
		t.Error("a filter that does not track its changes has one")
	}
	if text, _ = new(aggregate.Delta).MarshalBinary(); len(text) > 0 {
		t.Errorf("no change has %d bytes", len(text))
	}
	before, _ := f.MarshalBinary()
	f.Apply(new(aggregate.Delta))
	if after, _ := f.MarshalBinary(); !bytes.Equal(before, after) {
		t.Error("no change has changed the filter")
	}
}

// The bytes of a change are a format: archives keep them.
func TestDeltaGolden(t *testing.T) {
	f := &aggregate.Filter{}
	f.Admit(aggregate.Unit{Producer: aggregate.ProducerID{9}, Number: 1, Low: 1}, laneX, at(0))
	f.Track()
	ticks(f, 0, 25.5)
	f.Admit(aggregate.Unit{Producer: runB, Number: 300, Low: 300, Unordered: true}, aggregate.Unit{Number: 300, Unordered: true}.Lane(aggregate.Record{}), at(25.5))
	f.Admit(aggregate.Unit{Producer: runA, Number: 7, Low: 3}, laneX, at(25.5))
	f.Admit(aggregate.Unit{Producer: runA, Number: 5, Low: 5}, laneY, at(25.5))
	d := f.Delta()
	head := "01" + "90b15d" + "9081f3ffbc31" + "01" + "09000000000000000000000000000000" + "02" + "01000000000000000000000000000000" + "00" + "05" + "02"
	tail := "02000000000000000000000000000000" + "00" + "ac02" + "01" + "01"
	text, _ := d.MarshalBinary()
	if want := head + "00" + hex.EncodeToString(laneY[:]) + "08" + hex.EncodeToString(laneX[:]) + tail; hex.EncodeToString(text) != want {
		t.Errorf("got  %x\nwant %s", text, want)
	}
	text = d.AppendIndexed(nil, func(l aggregate.Lane) (int, bool) { return map[aggregate.Lane]int{laneX: 3, laneY: 70}[l], true })
	if want := head + "02" + "8c01" + "0a" + "8501" + tail; hex.EncodeToString(text) != want {
		t.Errorf("by index: got  %x\nwant %s", text, want)
	}
	for n := range uint64(3) {
		f.Admit(aggregate.Unit{Producer: runA, Number: 8 + n, Low: 8}, aggregate.Lane{byte(n)}, at(25.5))
	}
	text = f.Delta().AppendIndexed(nil, func(l aggregate.Lane) (int, bool) { return 5 + 40*int(l[0]), true })
	if want := "0190b15d9081f3ffbc31" + "00" + "01" + "01000000000000000000000000000000" + "00" + "08" + "03" + "02" + "0a" + "9f01" + "9f01"; hex.EncodeToString(text) != want {
		t.Errorf("steps: got  %x\nwant %s", text, want)
	}
}

func TestDeltaRefuses(t *testing.T) {
	id := func(b string) string { return b + "000000000000000000000000000000" }
	for name, text := range map[string]string{
		"another version":          "0200000000",
		"only a version":           "01",
		"bytes behind the end":     "010000000000",
		"removed out of order":     "01000002" + id("02") + id("01") + "00",
		"more than there are":      "0100007f" + id("02") + "00",
		"a last record after now":  "010000" + "00" + "01" + id("01") + "01" + "00",
		"half a lane":              "010000" + "00" + "01" + id("01") + "00" + "01" + "01" + "00" + "0000",
		"a step without records":   "010000" + "00" + "01" + id("01") + "00" + "01" + "01" + "03",
		"a number beyond":          "010000" + "00" + "01" + id("01") + "00" + "01" + "01" + "858010",
		"an index without records": "010000" + "00" + "01" + id("01") + "00" + "01" + "01" + "02" + "00",
	} {
		bin, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := new(aggregate.Delta).UnmarshalBinary(bin); !errors.Is(err, aggregate.ErrDeltaSyntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, index := range []string{"0201", "0206", "02feffffff1f", "02ffffffff1f", "0f", "ffffffff1f"} { // not 0 to 2
		bin, _ := hex.DecodeString("010000" + "00" + "01" + id("01") + "00" + "01" + "01" + index)
		if _, err := aggregate.ParseDelta(bin, func(i int) (aggregate.Lane, bool) { return laneX, i < 3 }); !errors.Is(err, aggregate.ErrDeltaSyntax) {
			t.Errorf("index %s: %v", index, err)
		}
	}
}

func FuzzDelta(f *testing.F) {
	small := &aggregate.Filter{}
	small.Track()
	small.Admit(aggregate.Unit{Producer: runA, Number: 7, Low: 3}, laneX, at(0))
	small.Admit(aggregate.Unit{Producer: runB, Number: 7, Low: 7, Unordered: true}, laneY, at(0))
	text, _ := small.Delta().MarshalBinary()
	f.Add(text)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := aggregate.ParseDelta(text, func(i int) (aggregate.Lane, bool) { return aggregate.Lane{byte(i)}, i < 9 })
		if err != nil {
			if !errors.Is(err, aggregate.ErrDeltaSyntax) {
				t.Fatal(err)
			}
			return
		}
		once, twice := filterOf(0, 1), filterOf(0, 1)
		once.Apply(d)
		again, _ := d.MarshalBinary()
		if d, err = aggregate.ParseDelta(again, nil); err != nil {
			t.Fatalf("%x becomes %x: %v", text, again, err)
		}
		twice.Apply(d)
		a, _ := once.MarshalBinary()
		if b, _ := twice.MarshalBinary(); !bytes.Equal(a, b) {
			t.Fatalf("%x: another state", text)
		}
	})
}
