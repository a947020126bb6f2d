package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/shardlog"
	"github.com/runnel-stream/runnel/keyspace"
)

// ledger is a store that remembers what it was told.
type ledger struct{ lines []string }

func (l *ledger) Create(id shardlog.ID) *shardlog.Shard {
	l.lines = append(l.lines, fmt.Sprint("create ", id))
	return nil
}

func (l *ledger) Seal(id shardlog.ID) func() {
	l.lines = append(l.lines, fmt.Sprint("seal ", id))
	return func() { l.lines = append(l.lines, fmt.Sprint("sealed ", id)) }
}

func (l *ledger) Delete(id shardlog.ID) func() {
	l.lines = append(l.lines, fmt.Sprint("delete ", id))
	return func() { l.lines = append(l.lines, fmt.Sprint("deleted ", id)) }
}

// history is a row of changes that uses every kind of them.
func history() []*change {
	halves := keyspace.Uniform(2)
	st := &stream{
		World: here, Name: "orders", Created: 1000, Retention: 24, Next: 1,
		settings: settings{
			Mode: modeProvisioned, MaxRecord: 1024, Tags: map[string]string{"a": "b"},
		},
		Shards: []*shard{{Log: 1, Range: keyspace.All, Created: 1, Opened: 1000}},
	}
	other := &stream{
		World: here, Name: "other", Created: 2000, Next: 1,
		Shards: []*shard{{Log: 4, Range: keyspace.All, Created: 9, Opened: 2000}},
	}
	changes := []*change{
		{Op: changeKey, At: 1, Key: make([]byte, keySize)},
		{Op: changeCreate, At: 1000, Stream: st},
		{
			Op: changeReshard, At: 1500, World: &here, Name: "orders", Until: 1600, Close: []uint32{0},
			Open: []*shard{
				{Index: 1, Log: 2, Range: halves[0], Created: 2, Opened: 1500, Parents: []uint32{0}},
				{Index: 2, Log: 3, Range: halves[1], Created: 2, Opened: 1500, Parents: []uint32{0}},
			},
		},
		{Op: changeCreate, At: 2000, Stream: other},
		{Op: changeRetain, At: 2100, World: &here, Name: "orders", Retention: 48},
		{Op: changeDelete, At: 2200, World: &here, Name: "other", Until: 2300},
		{Op: changeExpire, At: 2300, World: &here, Name: "orders", Expire: []uint32{0}},
		{Op: changeDrop, At: 2400, World: &here, Name: "other"},
	}
	for i, ch := range changes {
		ch.Seq = uint64(i + 1)
	}
	return changes
}

func replay(t testing.TB, c *catalogue, changes []*change) {
	t.Helper()
	for _, ch := range changes {
		frame, err := json.Marshal(ch)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Replay(0, frame); err != nil {
			t.Fatal(err)
		}
	}
}

func freeze(t testing.TB, c *catalogue) string {
	t.Helper()
	data, err := c.Freeze()(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The state is the same whether it comes from the frames alone or from a snapshot at any
// moment and the frames around and after it, and so is what the store is told.
func TestReplayIsDeterministic(t *testing.T) {
	changes := history()
	var want ledger
	c := newCatalogue(&want)
	replay(t, c, changes)
	state := freeze(t, c)
	wantLines := "[create 1 seal 1 create 2 create 3 sealed 1 create 4 delete 1 deleted 1 " +
		"delete 4 deleted 4]"
	if got := fmt.Sprint(want.lines); got != wantLines {
		t.Errorf("the store was told %s, want %s", got, wantLines)
	}
	for cut := range len(changes) + 1 {
		first := newCatalogue(new(ledger))
		replay(t, first, changes[:cut])
		later := new(ledger)
		second := newCatalogue(later)
		if err := second.Restore([]byte(freeze(t, first))); err != nil {
			t.Fatal(err)
		}
		replay(t, second, changes[max(0, cut-2):]) // two that the snapshot holds
		if got := freeze(t, second); got != state {
			t.Errorf("a snapshot after change %d leads to\n%s\nwant\n%s", cut, got, state)
		}
	}
}

// A change that does not fit is an error and leaves the state alone.
func TestApplyRefuses(t *testing.T) {
	for i, bad := range []*change{
		{Op: changeKey, Key: []byte("short")},
		{Op: changeCreate},
		{Op: changeCreate, Stream: &stream{World: here, Name: "orders"}},
		{Op: changeCreate, Stream: &stream{World: here, Name: "new"}}, // no shards
		{Op: changeCreate, Stream: &stream{World: here, Name: "new", Shards: []*shard{nil}}},
		{Op: changeDelete, Name: "orders"},
		{Op: changeDelete, World: &here, Name: "none"},
		{Op: changeReshard, World: &here, Name: "orders", Close: []uint32{0}}, // leaves a hole
		{Op: changeReshard, World: &here, Name: "orders", Close: []uint32{7}},
		{Op: changeExpire, World: &here, Name: "orders", Expire: []uint32{0}}, // it is open
		{Op: "frobnicate", World: &here, Name: "orders"},
		{Op: changeRetain, World: &here, Name: "orders", Seq: 9, At: 3000},
		{Op: changeRetain, World: &here, Name: "orders", Seq: 3},
	} {
		l := new(ledger)
		c := newCatalogue(l)
		replay(t, c, history()[:2])
		before, lines := freeze(t, c), len(l.lines)
		if bad.Seq == 0 {
			bad.Seq, bad.At = 3, 3000
		}
		frame, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Replay(0, frame); !errors.Is(err, errChange) {
			t.Errorf("change %d: %v, want %v", i, err, errChange)
		}
		if freeze(t, c) != before || len(l.lines) != lines {
			t.Errorf("change %d was refused and has changed the state", i)
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	for _, data := range []string{
		"", "x", `{"version":2}`, `{"version":1,"key":"QQ=="}`, `{"version":1,"streams":[null]}`,
		`{"version":1,"streams":[{"name":"a"}]}`,
	} {
		if err := newCatalogue(new(ledger)).Restore([]byte(data)); err == nil {
			t.Errorf("the snapshot %q is taken", data)
		}
	}
}

func FuzzReplay(f *testing.F) {
	for _, ch := range history() {
		ch.Seq = 3
		frame, err := json.Marshal(ch)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		c := newCatalogue(new(ledger))
		replay(t, c, history()[:2])
		if c.Replay(0, frame) != nil {
			return
		}
		for _, st := range c.streams { // what was taken can be used
			if len(st.routes) == 0 {
				t.Fatalf("stream %q has no open shard", st.Name)
			}
			st.route(keyspace.Max)
			describeShards(st.listed(1 << 40))
		}
		if err := newCatalogue(new(ledger)).Restore([]byte(freeze(t, c))); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRestore(f *testing.F) {
	c := newCatalogue(new(ledger))
	f.Add([]byte(freeze(f, c)))
	replay(f, c, history()[:5])
	f.Add([]byte(freeze(f, c)))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCatalogue(new(ledger))
		if c.Restore(data) != nil {
			return
		}
		again := newCatalogue(new(ledger))
		if err := again.Restore([]byte(freeze(t, c))); err != nil {
			t.Fatal(err)
		}
	})
}

// Routing by binary search finds the one open shard whose range holds the key.
func TestRoute(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	st := &stream{Name: "orders"}
	for i, r := range keyspace.Uniform(37) {
		st.Shards = append(st.Shards, &shard{Index: uint32(i), Log: 1, Range: r})
	}
	slices.Reverse(st.Shards)
	if err := st.index(); err != nil {
		t.Fatal(err)
	}
	keys := []keyspace.Key{{}, keyspace.Max}
	for _, r := range keyspace.Uniform(37) {
		keys = append(keys, r.Start, r.End)
	}
	for range 1000 {
		keys = append(keys, keyspace.Key{Hi: rng.Uint64(), Lo: rng.Uint64()})
	}
	for _, k := range keys {
		if sh := st.route(k); !sh.Range.Contains(k) {
			t.Fatalf("%s is routed to %s", k, sh.Range)
		}
	}
}

func TestClockNeverStepsBack(t *testing.T) {
	ms := int64(5000)
	c := clock{now: func() time.Time { return time.UnixMilli(ms) }}
	for _, step := range []struct{ system, floor, want int64 }{
		{5000, 0, 5000}, {4000, 0, 5000}, {6000, 0, 6000}, {6000, 9000, 9000}, {7000, 8000, 9000},
	} {
		ms = step.system
		c.notBefore(step.floor)
		if got := c.read(); got != step.want {
			t.Errorf("at %d, not before %d, the clock reads %d, want %d",
				step.system, step.floor, got, step.want)
		}
	}
}
