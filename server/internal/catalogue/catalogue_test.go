package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// home is the world of the tests.
var home = wire.World{Account: "000000000000", Region: "us-east-1"}

// ledger is a store that remembers the catalogue's calls.
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

// history is a sequence of changes that includes every kind.
func history() []*Change {
	halves := keyspace.Uniform(2)
	lower, upper := halves[1].SplitAt(halves[1].Middle())
	st := &Stream{
		World: home, Name: "orders", Created: 1000, Retention: 24, Next: 1,
		Settings: Settings{
			Mode: ModeProvisioned, MaxRecord: 1024, Tags: map[string]string{"a": "b"},
		},
		Shards: []*Shard{{Log: 1, Range: keyspace.All(), Created: 1, Opened: 1000}},
	}
	other := &Stream{
		World: home, Name: "other", Created: 2000, Next: 1,
		Shards: []*Shard{{Log: 4, Range: keyspace.All(), Created: 9, Opened: 2000}},
	}
	changes := []*Change{
		{Op: ChangeKey, At: 1, Key: make([]byte, KeySize)},
		{Op: ChangeCreate, At: 1000, Stream: st},
		{
			Op: ChangePlan, At: 1400, World: &home, Name: "orders", Until: 1500,
			Plan: []Step{SplitStep(0, halves[0], halves[1])},
		},
		{
			Op: ChangeReshard, At: 1500, World: &home, Name: "orders", Until: 1600, Close: []uint32{0},
			Open: []*Shard{
				{Index: 1, Log: 2, Range: halves[0], Created: 2, Opened: 1500, Parents: []uint32{0}},
				{Index: 2, Log: 3, Range: halves[1], Created: 2, Opened: 1500, Parents: []uint32{0}},
			},
		},
		{Op: ChangeCreate, At: 2000, Stream: other},
		{Op: ChangePlan, At: 2030, World: &home, Name: "orders", Until: 2050, Plan: []Step{
			SplitStep(1, lower, upper), {From: []int{0, 2}, To: []keyspace.Range{halves[0].Join(lower)}},
		}},
		{
			Op: ChangeScale, At: 2050, World: &home, Name: "orders",
			Steps: []Replacement{
				{Close: []uint32{2}, Open: []*Shard{
					{Index: 3, Log: 5, Range: lower, Created: 3, Opened: 2050, Parents: []uint32{2}},
					{Index: 4, Log: 6, Range: upper, Created: 3, Opened: 2050, Parents: []uint32{2}},
				}},
				{Close: []uint32{1, 3}, Open: []*Shard{{
					Index: 5, Log: 7, Range: halves[0].Join(lower), Created: 4, Opened: 2050,
					Parents: []uint32{1, 3},
				}}},
			},
		},
		{Op: ChangeRetain, At: 2100, World: &home, Name: "orders", Retention: 48},
		{Op: ChangeSettings, At: 2110, World: &home, Name: "orders", Until: 2120, Settings: &Settings{
			Mode: ModeOnDemand, MaxRecord: 2048, Tags: map[string]string{"c": "d"},
			Policy: `{"Statement":[]}`, Encryption: EncryptionKMS, KeyID: "key",
			Encrypted:  []Span{{From: 1800, Until: 1900}, {From: 2120}},
			Monitoring: []string{"IncomingBytes"}, Warm: 10,
		}},
		{Op: ChangeAccount, At: 2130, Account: &Account{home, Commitment{2130, 5000, 0}}},
		{Op: ChangeAccount, At: 2140, Account: &Account{World: wire.World{Region: "a-1"}}},
		{Op: ChangeAccount, At: 2150, Account: &Account{home, Commitment{2130, 5000, 5000}}},
		{
			Op: ChangePlan, At: 2190, World: &home, Name: "other", Until: 2290,
			Plan: []Step{SplitStep(0, halves[0], halves[1])},
		},
		{Op: ChangeDelete, At: 2200, World: &home, Name: "other", Until: 2300},
		{Op: ChangeExpire, At: 2300, World: &home, Name: "orders", Expire: []uint32{0}},
		{Op: ChangeDrop, At: 2400, World: &home, Name: "other"},
	}
	for i, ch := range changes {
		ch.Seq = uint64(i + 1)
	}
	return changes
}

func replay(t testing.TB, c *Catalogue, changes []*Change) {
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

func freeze(t testing.TB, c *Catalogue) string {
	t.Helper()
	data, err := c.Freeze()(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The state is the same from the frames alone and from a snapshot at any moment with the frames
// around and after it. So are the catalogue's calls to the store.
func TestReplayIsDeterministic(t *testing.T) {
	changes := history()
	var want ledger
	c := New(&want)
	replay(t, c, changes)
	state := freeze(t, c)
	wantLines := "[create 1 seal 1 create 2 create 3 sealed 1 create 4 seal 3 " +
		"create 5 create 6 seal 2 seal 5 create 7 sealed 3 sealed 2 sealed 5 delete 1 deleted 1 " +
		"delete 4 deleted 4]"
	if got := fmt.Sprint(want.lines); got != wantLines {
		t.Errorf("the store was told %s, want %s", got, wantLines)
	}
	for cut := range len(changes) + 1 {
		first := New(new(ledger))
		replay(t, first, changes[:cut])
		later := new(ledger)
		second := New(later)
		if err := second.Restore([]byte(freeze(t, first))); err != nil {
			t.Fatal(err)
		}
		replay(t, second, changes[max(0, cut-2):]) // two that the snapshot holds
		if got := freeze(t, second); got != state {
			t.Errorf("a snapshot after change %d leads to\n%s\nwant\n%s", cut, got, state)
		}
	}
}

// A snapshot shows the moment at which it was begun, also if there are changes before it is
// written.
func TestFreezeIsAMoment(t *testing.T) {
	changes := history()
	for cut := range changes {
		c := New(new(ledger))
		replay(t, c, changes[:cut])
		frozen := c.Freeze()
		want, err := frozen(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		replay(t, c, changes[cut:])
		if got, err := frozen(context.Background()); err != nil || string(got) != string(want) {
			t.Errorf("the snapshot of change %d is %s, %v, want %s", cut, got, err, want)
		}
	}
}

// A change that does not fit is an error and leaves the state alone.
func TestApplyRefuses(t *testing.T) {
	halves := keyspace.Uniform(2)
	for i, bad := range []*Change{
		{Op: ChangeKey, Key: []byte("short")},
		{Op: ChangeCreate},
		{Op: ChangeCreate, Stream: &Stream{World: home, Name: "orders"}},
		{Op: ChangeCreate, Stream: &Stream{World: home, Name: "new"}}, // no shards
		{Op: ChangeCreate, Stream: &Stream{World: home, Name: "new", Shards: []*Shard{nil}}},
		{Op: ChangeDelete, Name: "orders"},
		{Op: ChangeDelete, World: &home, Name: "none"},
		{Op: ChangeReshard, World: &home, Name: "orders", Close: []uint32{0}}, // leaves a hole
		{Op: ChangeReshard, World: &home, Name: "orders", Close: []uint32{7}},
		{Op: ChangeScale, World: &home, Name: "orders", Steps: []Replacement{{Open: []*Shard{nil}}}},
		{Op: ChangeScale, World: &home, Name: "orders", Steps: []Replacement{
			{[]uint32{0}, []*Shard{{Index: 1, Log: 2, Range: keyspace.All()}}},
			{[]uint32{0}, []*Shard{{Index: 2, Log: 3, Range: keyspace.All()}}}, // closed by then
		}},
		{Op: ChangePlan, World: &home, Name: "orders"},
		{Op: ChangePlan, World: &home, Name: "orders", Plan: []Step{ // of another's piece
			SplitStep(1, halves[0], halves[1]),
		}},
		{Op: ChangePlan, World: &home, Name: "orders", Plan: []Step{ // leaves a hole
			SplitStep(0, halves[0], halves[0]),
		}},
		{Op: ChangePlan, World: &home, Name: "orders", Plan: []Step{ // of a piece twice
			SplitStep(0, halves[0], halves[1]), {From: []int{1, 1}, To: halves[:1]},
		}},
		{Op: ChangeCreate, Stream: &Stream{ // the pending one of it does not fit
			World: home, Name: "new", Next: 1, Pending: []Step{SplitStep(7, halves[0], halves[1])},
			Shards: []*Shard{{Log: 9, Range: keyspace.All()}},
		}},
		{Op: ChangeExpire, World: &home, Name: "orders", Expire: []uint32{0}}, // it is open
		{Op: ChangeSettings, World: &home, Name: "orders"},
		{Op: ChangeSettings, World: &home, Name: "none", Settings: &Settings{}},
		{Op: ChangeAccount, World: &home},
		{Op: "frobnicate", World: &home, Name: "orders"},
		{Op: ChangeRetain, World: &home, Name: "orders", Seq: 9, At: 3000},
		{Op: ChangeRetain, World: &home, Name: "orders", Seq: 3},
	} {
		l := new(ledger)
		c := New(l)
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
	all := `{"Start":{"Hi":0,"Lo":0},"End":{"Hi":18446744073709551615,"Lo":18446744073709551615}}`
	for _, data := range []string{
		`{"version":1,"streams":[{"name":"a","next":1,"shards":[{"log":1,"range":` + all + `}],` +
			`"pending":[{"from":[1],"to":[]}]}]}`, // of a piece that is not there
		"", "x", `{"version":2}`, `{"version":1,"key":"QQ=="}`, `{"version":1,"streams":[null]}`,
		`{"version":1,"streams":[{"name":"a"}]}`, `{"version":1,"accounts":[{},{}]}`,
	} {
		if err := New(new(ledger)).Restore([]byte(data)); err == nil {
			t.Errorf("the snapshot %q is taken", data)
		}
	}
}

// A snapshot and a frame of the first version of runnel keep their meaning: settings that they lack
// are not set.
func TestOldSnapshot(t *testing.T) {
	c := New(new(ledger))
	err := c.Restore([]byte(`{"version":1,"seq":7,"at":1000,"key":null,"nextLog":2,"droppedAt":0,` +
		`"droppedNumber":0,"streams":[{"world":{"Account":"000000000000","Region":"us-east-1"},` +
		`"name":"orders","created":1000,"retention":24,"mode":"PROVISIONED","maxRecord":1024,` +
		`"tags":{"a":"b"},"shards":[{"index":0,"log":1,"range":{"Start":{"Hi":0,"Lo":0},` +
		`"End":{"Hi":18446744073709551615,"Lo":18446744073709551615}},"created":1,"opened":1000}],"next":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Replay(0, []byte(`{"seq":8,"op":"settings","at":2000,"name":"orders",`+
		`"world":{"Account":"000000000000","Region":"us-east-1"},`+
		`"settings":{"mode":"ON_DEMAND","maxRecord":2048}}`))
	if err != nil {
		t.Fatal(err)
	}
	st := c.Find(home, "orders", serverclock.At(2000))
	if st == nil || st.Mode != ModeOnDemand || st.MaxRecord != 2048 || st.Tags != nil ||
		st.EncryptionType() != EncryptionNone || st.Encrypts(2000) || st.Status(serverclock.At(2000)) != StatusActive {
		t.Errorf("the stream is %+v", st)
	}
	// A resharding took effect at once, at the beginning of UPDATING.
	halves := keyspace.Uniform(2)
	for _, frame := range []string{
		`{"seq":9,"op":"reshard","at":3000,"name":"orders","world":{"Account":"000000000000",` +
			`"Region":"us-east-1"},"until":3100,"close":[0],"open":[` +
			oldShard(1, halves[0], "[0]") + `,` + oldShard(2, halves[1], "[0]") + `]}`,
		`{"seq":10,"op":"scale","at":4000,"name":"orders","world":{"Account":"000000000000",` +
			`"Region":"us-east-1"},"until":4100,"steps":[{"close":[1,2],"open":[` +
			oldShard(3, keyspace.All(), "[1,2]") + `]}]}`,
	} {
		if err := c.Replay(0, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	st = c.Find(home, "orders", serverclock.At(4099))
	if len(st.routes) != 1 || st.Status(serverclock.At(4099)) != StatusUpdating || st.Status(serverclock.At(4100)) != StatusActive {
		t.Errorf("the stream that was resharded is %+v", st)
	}
	if got := c.Account(home).Commitment.Status(2000); got != CommitmentDisabled {
		t.Errorf("the account's commitment is %s", got)
	}
}

// oldShard is a shard in a frame of the first version.
func oldShard(index int, r keyspace.Range, parents string) string {
	return fmt.Sprintf(`{"index":%d,"log":%d,"range":{"Start":{"Hi":%d,"Lo":%d},"End":{"Hi":%d,`+
		`"Lo":%d}},"created":9,"opened":3000,"parents":%s}`, index, index+1, r.Start.Hi, r.Start.Lo,
		r.End.Hi, r.End.Lo, parents)
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
		c := New(new(ledger))
		replay(t, c, history()[:2])
		if c.Replay(0, frame) != nil {
			return
		}
		for _, st := range c.streams { // the restored state can be used
			if len(st.routes) == 0 {
				t.Fatalf("stream %q has no open shard", st.Name)
			}
			st.Route(keyspace.Max())
			st.Listed(serverclock.At(1 << 40))
			takePending(t, c, st)
		}
		if err := New(new(ledger)).Restore([]byte(freeze(t, c))); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRestore(f *testing.F) {
	c := New(new(ledger))
	f.Add([]byte(freeze(f, c)))
	replay(f, c, history()[:3]) // with something pending
	f.Add([]byte(freeze(f, c)))
	replay(f, c, history()[3:7])
	f.Add([]byte(freeze(f, c)))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := New(new(ledger))
		if c.Restore(data) != nil {
			return
		}
		again := New(new(ledger))
		if err := again.Restore([]byte(freeze(t, c))); err != nil {
			t.Fatal(err)
		}
		for _, st := range again.streams {
			takePending(t, again, st)
		}
	})
}

// takePending takes the pending steps of a stream that was read from any input. They must not fail.
func takePending(t *testing.T, c *Catalogue, st *Stream) {
	t.Helper()
	if len(st.Pending) == 0 || c.state.NextLog > 1<<62 { // which no directory gets to
		return
	}
	ch := c.scaling(st, st.Pending, serverclock.At(1<<40))
	ch.Seq = c.state.Seq + 1
	if _, err := c.apply(ch); err != nil {
		t.Fatalf("what is pending cannot be done: %v", err)
	}
	if st := c.streams[st.Key()]; len(st.Pending) != 0 || st.Status(serverclock.At(1<<40)) == StatusUpdating {
		t.Fatalf("it was done, and the stream is still %+v", st)
	}
}

// Routing by binary search finds the one open shard with the key in its range.
func TestRoute(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	st := &Stream{Name: "orders"}
	for i, r := range keyspace.Uniform(37) {
		st.Shards = append(st.Shards, &Shard{Index: uint32(i), Log: 1, Range: r})
	}
	slices.Reverse(st.Shards)
	if err := st.index(); err != nil {
		t.Fatal(err)
	}
	keys := []keyspace.Key{{}, keyspace.Max()}
	for _, r := range keyspace.Uniform(37) {
		keys = append(keys, r.Start, r.End)
	}
	for range 1000 {
		keys = append(keys, keyspace.Key{Hi: rng.Uint64(), Lo: rng.Uint64()})
	}
	for _, k := range keys {
		if sh := st.Route(k); !sh.Range.Contains(k) {
			t.Fatalf("%s is routed to %s", k, sh.Range)
		}
	}
}
