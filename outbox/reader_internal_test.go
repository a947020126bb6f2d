package outbox

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/producer"
)

// fakeStore has rows in memory. Its other methods panic.
type fakeStore struct {
	store
	rowsNow []row           // in the order of their ids
	reads   int             // windows read
	after   func(reads int) // called after each window, before its rows are handled
	made    []change        // the commits
	running bool            // a transaction is open
}

func (f *fakeStore) add(id int64, key string) {
	f.rowsNow = append(f.rowsNow, row{id: id, key: key, data: []byte{}})
	slices.SortFunc(f.rowsNow, func(a, b row) int { return int(a.id - b.id) })
}

func (f *fakeStore) window(_ context.Context, w window) (p page, _ error) {
	if w.top && len(f.rowsNow) > 0 {
		p.top = f.rowsNow[len(f.rowsNow)-1].id
	}
	for _, r := range f.rowsNow {
		if r.id > w.after && (w.most.until == 0 || r.id <= w.most.until) &&
			!slices.Contains(w.skip, r.key) && len(p.rows) < w.most.rows {
			p.rows = append(p.rows, r)
		}
	}
	p.full, p.durable, p.xmin, p.next = len(p.rows) >= w.most.rows, true, 7, 7
	if f.running {
		p.xmin = 6
	}
	f.reads++
	if f.after != nil {
		f.after(f.reads)
	}
	return p, nil
}

func (*fakeStore) secure(context.Context) error { return nil }

func (f *fakeStore) commit(_ context.Context, _ fence, c *change) error {
	f.made = append(f.made, *c)
	return nil
}

// newReader returns a reader of a store that notes the rows that it puts.
func newReader(s store, b bounds) (r *reader, put *[]row) {
	put = &[]row{}
	r = &reader{
		store: s, intake: newIntake(b), log: func(string, ...any) {}, low: lowest, high: lowest,
		limit: 16,
		put: func(_ context.Context, at *row) error {
			*put = append(*put, *at)
			return nil
		},
	}
	return r, put
}

// Rows 1 and 2 of a key are committed between two windows of a pass, on both sides of the border.
// They are put in their order: neither pass takes row 2 before a pass has shown row 1.
func TestPassIsOneMoment(t *testing.T) {
	for at := range 4 {
		f := &fakeStore{running: true}
		for id := range int64(100) {
			if id != 10 {
				f.add(id, fmt.Sprint("other", id))
			}
		}
		r, put := newReader(f, newBounds(10_000, 1<<20))
		f.after = func(reads int) {
			if reads == at+1 {
				f.add(10, "key")  // drawn early, committed late
				f.add(150, "key") // drawn after that
				f.running = false
			}
		}
		for range 20 {
			if _, err := r.round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var ids []int64
		for _, p := range *put {
			if p.key == "key" {
				ids = append(ids, p.id)
			}
		}
		if !slices.Equal(ids, []int64{10, 150}) || len(*put) != 101 {
			t.Errorf("committed after window %d: %v of %d rows", at+1, ids, len(*put))
		}
	}
}

// A row that was deleted stays known until every read that began before has ended, also with a read
// inside another one.
func TestKnownRows(t *testing.T) {
	n := newIntake(newBounds(1000, 1<<20))
	r := &row{id: 7, key: "k"}
	n.beginRead()
	if n.admit(r) != take {
		t.Fatal("a new row is not taken")
	}
	n.deleted([]rowID{{id: 7}}, false)
	n.beginRead()
	if n.admit(r) != leave {
		t.Error("a read inside another has taken a row that was deleted since the other one began")
	}
	n.endRead()
	if n.admit(r) != leave {
		t.Error("a read has taken a row that was deleted since it began")
	}
	n.endRead()
	n = newIntake(newBounds(1000, 1<<20))
	n.beginRead()
	if n.admit(r) != take {
		t.Fatal("a new row is not taken")
	}
	other := &row{id: 7, key: "k", version: 8}
	for _, what := range []string{"while the known one is on its way", "in a read that began before"} {
		if n.admit(other) != leave || n.admitTurn(other) != full {
			t.Error("another row with the id is taken " + what)
		}
		n.deleted([]rowID{{id: 7}}, false)
	}
	n.endRead()
	n.beginRead()
	if places, _ := n.turns(10); len(places) != 1 || places[0].from != lowest ||
		n.admitTurn(other) != take {
		t.Errorf("the other row has no turn: %v", places)
	}
}

// No key has more than its part of the room, and a group never the part of another.
func TestBounds(t *testing.T) {
	b := newBounds(3200, 1<<20)
	n := newIntake(b)
	n.beginRead()
	id := int64(0)
	fill := func(key string) (taken int) {
		for {
			id++
			if n.admit(&row{id: id, key: key}) != take {
				return taken
			}
			taken++
		}
	}
	if got := fill("hot"); got != b.keyRows {
		t.Errorf("a hot key has %d rows, want %d", got, b.keyRows)
	}
	for k := range 1000 {
		fill(fmt.Sprint("key", k))
	}
	if n.rows > 3200 {
		t.Errorf("%d rows", n.rows)
	}
	for g := range n.groups {
		if n.groups[g].rows > b.groupRows {
			t.Errorf("group %d has %d rows", g, n.groups[g].rows)
		}
	}
}

// A row of a slow shard, whose groups are full, is passed over at once if another group has little
// to do. Under an even load it waits.
func TestPassOver(t *testing.T) {
	b := newBounds(16*100, 1<<20)
	for _, c := range []struct {
		rows int // of each other group
		over bool
	}{{0, true}, {10, true}, {90, false}} {
		n := newIntake(b)
		n.beginRead()
		id := int64(0)
		slow := n.key("slow").group
		for k := 0; k < 20_000; k++ {
			id++
			r := &row{id: id, key: fmt.Sprint("key", k)}
			g := n.keyOf(r).group
			if most := c.rows; g == slow || n.groups[g].rows < most {
				n.admit(r)
			}
		}
		r := &row{id: id + 1, key: "slow"}
		if n.groups[slow].rows != b.groupRows || n.admit(r) != full {
			t.Fatal("the slow group is not full")
		}
		if got := n.passOver(r, false); got != c.over {
			t.Errorf("with %d rows in each other group: %v", c.rows, got)
		}
	}
}

// With too many held keys a reader takes nothing more, and does not spin.
func TestTooManyHeld(t *testing.T) {
	f := &fakeStore{}
	for id := range int64(100) {
		f.add(id, fmt.Sprint("key", id))
	}
	r, put := newReader(f, newBounds(10_000, 1<<20))
	for k := range mostHeld {
		r.intake.hold(fmt.Sprint("held", k), false)
	}
	r.backlog = true
	if more, err := r.round(t.Context()); more || err != nil || len(*put) > 0 {
		t.Errorf("%v, %v, %d rows", more, err, len(*put))
	}
}

// Keys that were passed over get their turns in order, and none is lost, whatever room there is.
func TestTurns(t *testing.T) {
	b := newBounds(160, 1<<20)
	n := newIntake(b)
	n.beginRead()
	var over []string
	for k := range 300 {
		r := &row{id: int64(k), key: fmt.Sprint("key", k)}
		if n.admit(r) == full && n.passOver(r, true) {
			over = append(over, r.key)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		var all []rowID // everything that is on its way
		for id, r := range n.known {
			if !r.gone {
				all = append(all, rowID{id: id, version: r.version})
			}
		}
		n.deleted(all, false)
		places, _ := n.turns(7)
		for _, at := range places {
			if seen[at.key] {
				t.Fatalf("%s has had its turn", at.key)
			}
			seen[at.key] = true
			n.endTurn(at, 0, true)
		}
	}
	if len(over) == 0 || len(seen) != len(over) || n.overKeys != 0 {
		t.Errorf("%d of %d keys had their turn, %d are left", len(seen), len(over), n.overKeys)
	}
}

// A unit that has ended, and is not in the stream, leaves the journal before a later unit enters
// it.
func TestEndsComeFirst(t *testing.T) {
	for _, outcome := range []producer.UnitOutcome{
		producer.OutcomeRenewed, producer.OutcomeUndelivered,
	} {
		f := &fakeStore{}
		n := newIntake(newBounds(1000, 1<<20))
		c := newCommitter(f, fence{})
		c.done, c.log = func(*change) {}, func(string, ...any) {}
		j := newJournal(n, c)
		j.warn = c.log
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			_ = c.run(ctx) // until it is cancelled
			close(ended)
		}()
		frozen := func(number uint64, key string) {
			t.Helper()
			err := j.Frozen(ctx, []producer.FrozenUnit{{
				Unit: aggregate.Unit{Number: number, Low: 1}, PartitionKey: key,
				Marks: []uint64{number},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		frozen(1, "a")
		j.Settled([]producer.SettledUnit{{Number: 1, Outcome: outcome}})
		frozen(2, "b")
		cancel()
		<-ended
		open := map[uint64]bool{}
		for _, made := range f.made {
			for _, id := range made.closed {
				delete(open, id.number)
			}
			for _, u := range made.opened {
				if open[u.number] = true; u.number == 2 && open[1] {
					t.Errorf("%v: unit 1 is open when unit 2 is", outcome)
				}
			}
			if outcome == producer.OutcomeUndelivered && len(made.closed) > 0 &&
				len(made.held) != 1 {
				t.Errorf("a unit has left the journal, and its key is not held with it")
			}
		}
		if !open[2] || open[1] {
			t.Errorf("%v: open: %v", outcome, open)
		}
	}
}
