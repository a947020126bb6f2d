package aggregate_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// The state's bytes are a format: sinks keep them.
func TestStateGolden(t *testing.T) {
	f := &aggregate.Filter{}
	f.Admit(aggregate.Unit{Producer: runB, Number: 300, Low: 300, Unordered: true}, aggregate.Unit{Number: 300, Unordered: true}.Lane(aggregate.Record{}), at(0))
	f.Admit(aggregate.Unit{Producer: runA, Number: 7, Low: 3}, laneX, at(0))
	f.Admit(aggregate.Unit{Producer: runA, Number: 5, Low: 5}, laneY, at(0))
	f.Advance(at(0).Add(1000 * 1000)) // a millisecond
	const want = "02" + "01" + "81d095ffbc31" + "02" +
		"01000000000000000000000000000000" + "01" + "05" + "02" +
		"00" + "LANE-Y" + "04" + "LANE-X" +
		"02000000000000000000000000000000" + "01" + "ac02" + "01" + "01"
	expect := bytes.ReplaceAll([]byte(want), []byte("LANE-X"), []byte(hex.EncodeToString(laneX[:])))
	expect = bytes.ReplaceAll(expect, []byte("LANE-Y"), []byte(hex.EncodeToString(laneY[:])))
	state, err := f.MarshalBinary()
	if got := hex.EncodeToString(state); err != nil || got != string(expect) {
		t.Errorf("got  %s, %v\nwant %s", got, err, expect)
	}
}

// A state of version 1, as older archives have it, is read: its producers are as old
// as they were, and from there on the clock counts.
func TestStateOfVersion1(t *testing.T) {
	const text = "01ebff95ffbc310207000000000000000000000000000000e807010304254877b3c94f7d4a77fa3cc3935098d3" +
		"024c71db9c519db756d69ad0cccabf029202c5dd1913da9f54b0aa170b8c8141dc7e0800000000000000000000000000000000090101"
	state, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_700_000_006_123) // the latest arrival
	for _, c := range []struct {
		after time.Duration
		want  aggregate.Verdict
	}{{0, aggregate.VerdictDouble}, {4*aggregate.H - 2*time.Second, aggregate.VerdictDouble}, {6 * aggregate.H, aggregate.VerdictFresh}} {
		f := &aggregate.Filter{}
		if err := f.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		began := f.Elapsed()
		f.Advance(now)
		if f.Elapsed() != began {
			t.Errorf("the clock has moved by %v", f.Elapsed()-began)
		}
		f.Advance(now.Add(time.Hour))
		if f.Elapsed() != began+time.Minute {
			t.Errorf("an hour counts %v", f.Elapsed()-began)
		}
		for m := time.Minute; m < c.after; m += time.Minute {
			f.Advance(now.Add(time.Hour + m))
		}
		for n, key := range map[uint64]string{3: "key-0", 4: "key-1", 5: "key-2"} {
			unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: n, Low: 1}
			got := f.Admit(unit, aggregate.LaneOf(key, ""), time.Time{})
			if got != c.want {
				t.Errorf("after %v, unit %d: got %d, want %d", c.after, n, got, c.want)
			}
		}
		if text, _ := reloaded(t, f).MarshalBinary(); text[0] != 2 {
			t.Errorf("it is written in version %d", text[0])
		}
	}
}

// Random units, and at random places a reloaded filter beside the one that went on: the same
// verdicts, and at the end the same bytes.
func TestStateIsAllThatCounts(t *testing.T) {
	for seed := range uint64(20 * soak()) {
		random := rand.New(rand.NewPCG(seed, 3))
		kept, restarted := &aggregate.Filter{}, &aggregate.Filter{}
		minutes := 0.0
		top := uint64(0)
		for range 2000 {
			minutes += random.Float64() / 10
			if random.IntN(400) == 0 {
				minutes += 12
			}
			top += uint64(random.IntN(3))
			number := max(1, top-min(top, uint64(random.IntN(20))))
			unit := aggregate.Unit{
				Producer: aggregate.ProducerID{byte(random.IntN(3))},
				Number:   number, Low: max(1, number-min(number, uint64(random.IntN(20)))),
				Unordered: random.IntN(3) == 0,
			}
			lane := unit.Lane(aggregate.Record{PartitionKey: string(rune('a' + random.IntN(30)))})
			if a, b := kept.Admit(unit, lane, at(minutes)), restarted.Admit(unit, lane, at(minutes)); a != b {
				t.Fatalf("seed %d: %d, and %d after a restart", seed, a, b)
			}
			if random.IntN(10) == 0 {
				restarted = reloaded(t, restarted)
			}
		}
		a, _ := kept.MarshalBinary()
		if b, _ := restarted.MarshalBinary(); !bytes.Equal(a, b) {
			t.Fatalf("seed %d: other states", seed)
		}
	}
}

// A link keeps the state in its JSON.
func TestStateInJSON(t *testing.T) {
	type link struct {
		Filter *aggregate.Filter `json:"filter"`
	}
	f := &aggregate.Filter{}
	unit := aggregate.Unit{Producer: runA, Number: 1, Low: 1}
	f.Admit(unit, laneX, at(0))
	text, err := json.Marshal(link{f})
	if err != nil {
		t.Fatal(err)
	}
	var back link
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Filter.Admit(unit, laneX, at(0)) != aggregate.VerdictDouble {
		t.Errorf("%s has forgotten the unit", text)
	}
}

// UnmarshalBinary refuses bytes that AppendBinary cannot write, and leaves the filter unchanged.
func TestUnmarshalRefuses(t *testing.T) {
	lane := hex.EncodeToString(laneX[:])
	id := func(b string) string { return b + "000000000000000000000000000000" }
	for name, text := range map[string]string{
		"nothing":                                    "",
		"another version":                            "030000",
		"only a version":                             "02",
		"only version 1":                             "01",
		"no producers' count":                        "0100",
		"no producers' count, version 2":             "020000",
		"a byte behind the end":                      "01000000",
		"a byte behind the end, version 2":           "0200000000",
		"a long varint":                              "01800000",
		"a long varint, version 2":                   "02800000",
		"a varint without an end":                    "01ffffffffffffffffffff01",
		"a varint without an end, version 2":         "02ffffffffffffffffffff01",
		"a time of 2^63":                             "0180808080808080808001" + "00",
		"a time of 2^63, version 2":                  "0280808080808080808001" + "00",
		"too many producers":                         "0100818001",
		"too many producers, version 2":              "020000818001",
		"half a producer":                            "01000101",
		"half a producer, version 2":                 "0200000101",
		"a last record after now":                    "010101" + id("01") + "020100",
		"a last record after now, version 2":         "02010101" + id("01") + "020100",
		"producers out of order":                     "010002" + id("02") + "000100" + id("01") + "000100",
		"producers out of order, version 2":          "02000002" + id("02") + "000100" + id("01") + "000100",
		"a producer twice":                           "010002" + id("01") + "000100" + id("01") + "000100",
		"a producer twice, version 2":                "02000002" + id("01") + "000100" + id("01") + "000100",
		"no lanes' count":                            "010001" + id("01") + "0001",
		"no lanes' count, version 2":                 "02000001" + id("01") + "0001",
		"too many lanes":                             "010001" + id("01") + "0001" + "828004",
		"too many lanes, version 2":                  "02000001" + id("01") + "0001" + "828004",
		"half a lane":                                "010001" + id("01") + "00010100" + lane[:30],
		"half a lane, version 2":                     "02000001" + id("01") + "00010100" + lane[:30],
		"lanes out of order":                         "010001" + id("01") + "00010200" + lane + "00" + lane[:30] + "00",
		"lanes out of order, version 2":              "02000001" + id("01") + "00010200" + lane + "00" + lane[:30] + "00",
		"a lane twice":                               "010001" + id("01") + "00010200" + lane + "02" + lane,
		"a lane twice, version 2":                    "02000001" + id("01") + "00010200" + lane + "02" + lane,
		"a number beyond the window":                 "010001" + id("01") + "000101" + "838008",
		"a number beyond the window, version 2":      "02000001" + id("01") + "000101" + "838008",
		"numbers that add up beyond":                 "010001" + id("01") + "000102" + "818008" + "03",
		"numbers that add up beyond, version 2":      "02000001" + id("01") + "000102" + "818008" + "03",
		"a number beyond the highest":                "010001" + id("01") + "00ffffffffffffffff7f01" + "03",
		"a number beyond the highest, version 2":     "02000001" + id("01") + "00ffffffffffffffff7f01" + "03",
		"a clock beyond its end":                     "02818080808080808040" + "00" + "00",
		"an unordered lane's longer form":            "010001" + id("01") + "00010100" + "00000000000000000000000000000001",
		"an unordered lane's longer form, version 2": "02000001" + id("01") + "00010100" + "00000000000000000000000000000001",
	} {
		state, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := &aggregate.Filter{}
		unit := aggregate.Unit{Producer: runA, Number: 1, Low: 1}
		f.Admit(unit, laneX, at(0))
		if err := f.UnmarshalBinary(state); !errors.Is(err, aggregate.ErrStateSyntax) {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.UnmarshalText([]byte(base64.StdEncoding.EncodeToString(state))); !errors.Is(err, aggregate.ErrStateSyntax) {
			t.Errorf("%s, as text: %v", name, err)
		}
		if f.Admit(unit, laneX, at(0)) != aggregate.VerdictDouble {
			t.Errorf("%s: the filter has changed", name)
		}
	}
	for _, text := range []string{"AgAAAA==\n", "AgAAAA", "AgAAAA=", "AgAA_A==", " AgAAAA=="} {
		if err := new(aggregate.Filter).UnmarshalText([]byte(text)); !errors.Is(err, aggregate.ErrStateSyntax) {
			t.Errorf("text %q: %v", text, err)
		}
	}
}

func FuzzFilterState(f *testing.F) {
	full := filterOf(1, 3)
	full.Admit(aggregate.Unit{Producer: runA, Number: 70_000, Low: 60_000}, laneX, at(2))
	small := &aggregate.Filter{}
	small.Admit(aggregate.Unit{Producer: runA, Number: 7, Low: 3}, laneX, at(0))
	small.Admit(aggregate.Unit{Producer: runB, Number: 7, Low: 7, Unordered: true}, laneY, at(0))
	for _, filter := range []*aggregate.Filter{{}, small, full} {
		state, _ := filter.MarshalBinary()
		f.Add(state[:min(len(state), 4096)])
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		filter := &aggregate.Filter{}
		if err := filter.UnmarshalBinary(state); err != nil {
			if !errors.Is(err, aggregate.ErrStateSyntax) {
				t.Fatal(err)
			}
			return
		}
		again, _ := filter.MarshalBinary()
		if state[0] == 2 && !bytes.Equal(again, state) {
			t.Fatalf("%x becomes %x", state, again)
		}
		clone, _ := filter.Clone().MarshalBinary()
		if !bytes.Equal(clone, again) {
			t.Fatalf("a clone of %x is %x", again, clone)
		}
		filter.Admit(aggregate.Unit{Producer: runA, Number: 9, Low: 1}, laneX, at(0))
		if reloaded(t, filter).Admit(aggregate.Unit{Producer: runA, Number: 9, Low: 1}, laneX, at(0)) == aggregate.VerdictFresh &&
			filter.Counts.Unfiltered+filter.Counts.Malformed == 0 {
			t.Fatal("a unit is fresh twice")
		}
	})
}
