package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// memoryJournal is a Journal in memory.
type memoryJournal struct {
	fail func(call int) error // the error of each Frozen; nil: none

	mu      sync.Mutex
	calls   int
	twice   int // units that were frozen while another unit of their lane was open
	open    []FrozenUnit
	kept    map[string]bool // the data of all units of Frozen
	settled []SettledUnit
}

func (n *memoryJournal) Frozen(_ context.Context, units []FrozenUnit) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if n.fail != nil {
		if err := n.fail(n.calls); err != nil {
			return err
		}
	}
	if n.kept == nil {
		n.kept = map[string]bool{}
	}
	for _, u := range units {
		n.kept[string(u.Data)] = true
		if slices.ContainsFunc(n.open, func(open FrozenUnit) bool {
			return open.PartitionKey == u.PartitionKey
		}) {
			n.twice++
		}
	}
	n.open = append(n.open, units...)
	return nil
}

func (n *memoryJournal) Settled(units []SettledUnit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settled = append(n.settled, units...)
	for _, end := range units {
		n.open = slices.DeleteFunc(n.open, func(u FrozenUnit) bool {
			return u.Unit.Producer == end.Producer && u.Unit.Number == end.Number
		})
	}
}

// checkJournalled fails if a unit was sent that is not in the journal.
func (s *stream) checkJournalled(t *testing.T, n *memoryJournal) {
	s.fault = func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, r := range in.Records {
			if !n.kept[string(r.Data)] {
				t.Errorf("a unit of key %s is sent, and the journal does not have it", *r.PartitionKey)
			}
		}
		return false, nil
	}
}

// Every unit is in the journal before it is sent, with the marks of its records. Settled is called
// before the results of the records are reported.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{latency: 10 * time.Millisecond}
		s.checkJournalled(t, n)
		p, ctx := s.openUnits(t, func(c *Config) { c.Journal = n })
		began := time.Now()
		mark := uint64(100)
		for i := range 50 {
			for _, key := range []string{"a", "b", "c"} {
				record := runnel.Record{PartitionKey: key, Data: fmt.Append(nil, i+1)}
				mark++
				mark := mark
				if err := p.PutMarked(ctx, record, mark, func(Result) {
					time.Sleep(7 * time.Millisecond) // Frozen must not wait for it
					n.mu.Lock()
					defer n.mu.Unlock()
					for _, u := range n.open {
						if slices.Contains(u.Marks, mark) {
							t.Errorf("record %d has its result, and its unit is open", mark)
						}
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		n.mu.Lock()
		for _, u := range n.open {
			var d aggregate.Decoder
			if !d.Open(u.Data) || d.Len() != len(u.Marks) || u.FrozenAt.Before(began) ||
				!isOf(p, u.Unit) {
				t.Errorf("%+v", u)
			}
			for i, r := range d.AppendRecords(nil) {
				k := uint64(strings.Index("abc", u.PartitionKey))
				if want := 101 + 3*(markIn(r.Data)-1) + k; u.Marks[i] != want {
					t.Errorf("key %s, record %s: mark %d, want %d", r.PartitionKey, r.Data, u.Marks[i], want)
				}
			}
		}
		if len(n.open) == 0 {
			t.Error("nothing is open amid the work")
		}
		n.mu.Unlock()
		closeNow(t, p, ctx)
		if len(n.open) != 0 || len(n.settled) != len(s.keys) || s.inOrder(t) != 0 || n.twice > 0 {
			t.Errorf("%d open, %d settled, %d sent, %d frozen with another of their lane open",
				len(n.open), len(n.settled), len(s.keys), n.twice)
		}
		for _, end := range n.settled {
			if end.Outcome != OutcomeStored {
				t.Errorf("%+v", end)
			}
		}
	})
}

// While the journal fails, nothing is sent. When it recovers, everything is.
func TestJournalThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		began := time.Now()
		n.fail = func(int) error {
			if time.Since(began) < 20*time.Minute {
				return io.ErrShortWrite
			}
			return nil
		}
		s := &stream{latency: time.Millisecond}
		s.checkJournalled(t, n)
		p, ctx := s.openUnits(t, func(c *Config) { c.Journal = n })
		load(t, p, ctx, 500, 20, func(r Result) {
			if r.Err != nil || r.Unknown > 0 {
				t.Error(r)
			}
		})
		time.Sleep(10 * time.Minute)
		if stats := p.Stats(); s.calls != 0 || stats.Calls != 0 || stats.Withheld == 0 || stats.Outage {
			t.Errorf("%d calls, %+v", s.calls, stats)
		}
		closeNow(t, p, ctx)
		if s.inOrder(t) != 0 || p.Stats().Delivered != 500 || len(n.open) != 0 {
			t.Errorf("%+v, %d open", p.Stats(), len(n.open))
		}
		if !slices.ContainsFunc(n.settled, func(u SettledUnit) bool { return u.Outcome == OutcomeRenewed }) {
			t.Error("the units that grew too old were not told to go again")
		}
	})
}

// A Close that runs out of time leaves its units open. The next run sends them first, with the same
// bytes and before anything newer of their keys. A filter drops the resulting duplicates.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{}
		s.fault = func(ctx context.Context, _ int, _ *kinesis.PutRecordsInput) (bool, error) {
			<-ctx.Done()
			return true, ctx.Err() // stored, and the answer is lost
		}
		p, ctx := s.openUnits(t, func(c *Config) { c.Journal, c.Linger = n, time.Millisecond })
		for i := range 4 {
			put(t, p, ctx, runnel.Record{PartitionKey: "a", Data: fmt.Append(nil, i+1)}, nil)
		}
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := p.Close(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if len(n.open) != 1 || len(n.settled) != 0 {
			t.Fatalf("%d open, %v", len(n.open), n.settled)
		}
		held := string(n.open[0].Data)
		s.fault = nil
		var results []Result
		p, ctx = s.openUnits(t, func(c *Config) {
			c.Journal, c.Resume = n, n.open
			c.OnResult = func(_ runnel.Record, r Result) { results = append(results, r) }
		})
		put(t, p, ctx, runnel.Record{PartitionKey: "a", Data: []byte("5")}, nil)
		closeNow(t, p, ctx)
		if len(s.data) != 3 || s.data[0] != held || s.data[1] != held {
			t.Fatalf("sent: %q", s.data)
		}
		if filtered := s.read(t, true); len(filtered) != 5 || inOrder(t, filtered) != 0 {
			t.Errorf("%v pass the filter", filtered)
		}
		stats := p.Stats()
		if len(n.open) != 0 || len(results) != 5 || results[0].Unknown != 1 || stats.Buffered != 0 ||
			stats.BufferedBytes != 0 || stats.Taken != 5 {
			t.Errorf("%d open, %+v, %+v", len(n.open), results, stats)
		}
		if r := p.mu.room; r.records.used != [groups]int{} || r.bytes.used != [groups]int{} {
			t.Errorf("nothing is left, and the room holds %v records, %v bytes", r.records.used, r.bytes.used)
		}
	})
}

func TestResumeRefuses(t *testing.T) {
	with := func(low uint64) FrozenUnit {
		unit := aggregate.Unit{Producer: aggregate.ProducerID{1}, Number: 3, Low: low}
		var e aggregate.Encoder
		if err := e.Add(aggregate.Record{
			PartitionKey: "a", Data: []byte("1"), Tags: unit.AppendTo(nil),
		}); err != nil {
			t.Fatal(err)
		}
		return FrozenUnit{
			Unit: unit, PartitionKey: "a", Data: e.Seal(nil), Marks: []uint64{1},
			FrozenAt: time.Now(),
		}
	}
	good := func() FrozenUnit { return with(2) }
	for says, spoil := range map[string]func(*FrozenUnit){
		"low 4":                func(f *FrozenUnit) { *f = with(4) },
		"no aggregated record": func(f *FrozenUnit) { f.Data[len(f.Data)-1]++ },
		"another identity":     func(f *FrozenUnit) { f.Unit.Number++ },
		"another key":          func(f *FrozenUnit) { f.PartitionKey = "b" },
		"2 marks":              func(f *FrozenUnit) { f.Marks = append(f.Marks, 2) },
		"FrozenAt":             func(f *FrozenUnit) { f.FrozenAt = time.Time{} },
		"it is empty":          func(f *FrozenUnit) { f.PartitionKey = "" },
		"explicit hash key":    func(f *FrozenUnit) { f.ExplicitHashKey = "x" },
		"MaxRecordBytes":       func(f *FrozenUnit) { f.Data = big(t, f.Unit); f.Marks = []uint64{1} },
	} {
		unit := good()
		spoil(&unit)
		_, err := New(t.Context(), Config{Stream: "orders", Kinesis: &stream{}, Resume: []FrozenUnit{unit}})
		if !errors.Is(err, ErrNotResumable) || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error that says %q: %v", says, err)
		}
	}
	p, err := New(t.Context(), Config{
		Stream: "orders", Kinesis: &stream{}, Resume: []FrozenUnit{good()}, Logger: silent,
		OnResult: func(runnel.Record, Result) {}, // without a Reader the unit is unresolved
	})
	if err != nil {
		t.Fatal(err)
	}
	closeNow(t, p, t.Context())
}

// big returns a unit that exceeds a record limit of 1 MiB.
func big(t *testing.T, unit aggregate.Unit) []byte {
	var e aggregate.Encoder
	if err := e.Add(aggregate.Record{
		PartitionKey: "a", Data: make([]byte, 2<<20), Tags: unit.AppendTo(nil),
	}); err != nil {
		t.Fatal(err)
	}
	return e.Seal(nil)
}

// With a journal, Put refuses aggregates, which can have no identity, and Validate refuses the
// orders without units.
func TestJournalNeedsIdentities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ctx := (&stream{}).openUnits(t, func(c *Config) { c.Journal = &memoryJournal{} })
		var e aggregate.Encoder
		if err := e.Add(aggregate.Record{PartitionKey: "a"}); err != nil {
			t.Fatal(err)
		}
		whole := runnel.Record{PartitionKey: "a", Data: e.Seal(nil)}
		if err := p.PutFunc(ctx, whole, nil); !errors.Is(err, ErrNestedAggregate) {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
	for _, o := range []Order{OrderPlain, OrderChained} {
		err := Config{
			Stream: "s", Kinesis: &stream{}, Order: o, Journal: &memoryJournal{}, Resume: make([]FrozenUnit, 1),
		}.Validate()
		if err == nil || !strings.Contains(err.Error(), "Journal is set") ||
			!strings.Contains(err.Error(), "Resume has") {
			t.Errorf("%v: %v", o, err)
		}
	}
}

// A unit from a journal, however damaged, is either refused or resumed with the records that it
// contains.
func FuzzThaw(f *testing.F) {
	unit := aggregate.Unit{Producer: aggregate.ProducerID{1}, Number: 3, Low: 2}
	var e aggregate.Encoder
	tags := unit.AppendTo(nil)
	for _, data := range []string{"1", ""} {
		if err := e.Add(aggregate.Record{PartitionKey: "a", Data: []byte(data), Tags: tags}); err != nil {
			f.Fatal(err)
		}
		tags = nil
	}
	f.Add(e.Seal(nil), "a", "", uint64(3), uint64(2), 2)
	f.Add([]byte("1"), "", "x", uint64(0), uint64(9), -1)
	f.Fuzz(func(t *testing.T, data []byte, key, hash string, number, low uint64, marks int) {
		held := FrozenUnit{
			Unit:         aggregate.Unit{Producer: aggregate.ProducerID{1}, Number: number, Low: low},
			PartitionKey: key, ExplicitHashKey: hash, Data: data,
			Marks: make([]uint64, max(0, min(marks, 1000))), FrozenAt: time.Now(),
		}
		records, err := Config{Stream: "s"}.withDefaults().thaw(held)
		if err != nil {
			if !errors.Is(err, ErrNotResumable) {
				t.Fatal(err)
			}
			return
		}
		var d aggregate.Decoder
		if !d.Open(data) || d.Len() != len(records) || len(records) != len(held.Marks) {
			t.Fatalf("%d records of %d", len(records), d.Len())
		}
		for sub, r := range d.Records() {
			if unit, ok := r.Unit(); ok != (sub == 0) || ok && unit != held.Unit ||
				records[sub].PartitionKey != key || string(records[sub].Data) != string(r.Data) {
				t.Fatalf("record %d is %+v, resumed as %+v", sub, r, records[sub])
			}
		}
	})
}

// fullJournal is a Journal in memory that keeps all units.
type fullJournal struct {
	memoryJournal
	all []FrozenUnit
}

func (e *fullJournal) Frozen(ctx context.Context, units []FrozenUnit) error {
	err := e.memoryJournal.Frozen(ctx, units)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, units...)
	return err
}

// The journal gets the end of every record that is given up, by its unit or by its mark. Otherwise
// a later run would put the record behind newer records of its lane.
func TestJournalHearsWhatIsGivenUp(t *testing.T) {
	eachOrderWithUnits(t, func(t *testing.T, order Order) {
		n, s := &fullJournal{}, newSharded(1)
		began := time.Now()
		s.refuse = func(int, *types.PutRecordsRequestEntry) bool { return time.Since(began) < 30*time.Second }
		p, ctx := s.open(t, func(c *Config) {
			c.Order, c.Journal, c.GiveUpAfter = order, n, 10*time.Second
		})
		marks, undelivered := map[uint64]int{}, 0
		for mark := range uint64(100) {
			err := p.PutMarked(ctx, runnel.Record{PartitionKey: fmt.Sprint(mark % 3)}, mark, func(r Result) {
				if r.Err != nil {
					marks[mark]++
					undelivered++
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		closeNow(t, p, ctx)
		for _, end := range n.settled {
			if end.Outcome != OutcomeUndelivered {
				continue
			}
			told := end.Marks
			for _, u := range n.all {
				if u.Unit.Producer == end.Producer && u.Unit.Number == end.Number {
					told = u.Marks
				}
			}
			for _, mark := range told {
				marks[mark]--
			}
			if !errors.Is(end.Err, ErrGivenUp) {
				t.Errorf("%+v", end)
			}
		}
		for mark, left := range marks {
			if left != 0 {
				t.Errorf("record %d was reported, and the journal heard %d times less of it", mark, left)
			}
		}
		if undelivered < 5 || undelivered > 95 {
			t.Errorf("%d of 100 records were given up", undelivered)
		}
	})
}

// refusingJournal refuses the units of a key while it is closed.
type refusingJournal struct {
	memoryJournal
	closed string
}

var errClosedKey = errors.New("the key is closed")

func (n *refusingJournal) Frozen(ctx context.Context, units []FrozenUnit) error {
	refused := map[int]error{}
	var rest []FrozenUnit
	for i, u := range units {
		if u.PartitionKey == n.closed {
			refused[i] = errClosedKey
			continue
		}
		rest = append(rest, u)
	}
	if err := n.memoryJournal.Frozen(ctx, rest); err != nil || len(refused) == 0 {
		return err
	}
	return fmt.Errorf("some are closed: %w", &RefusedUnitsError{refused})
}

// The journal refuses the units of one key. The stream gets none of them, their records are
// reported with the journal's reason, and all the other records are delivered in order.
func TestJournalRefusesUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &refusingJournal{closed: "b"}
		s := &stream{latency: 10 * time.Millisecond}
		s.checkJournalled(t, &n.memoryJournal)
		p, ctx := s.openUnits(t, func(c *Config) { c.Journal, c.MaxUnitBytes = n, 100 })
		delivered, refused := map[string]int{}, map[string]int{}
		for i := range 50 {
			for _, key := range []string{"a", "b", "c"} {
				record := runnel.Record{PartitionKey: key, Data: fmt.Append(nil, i+1)}
				err := p.PutFunc(ctx, record, func(r Result) {
					switch {
					case r.Err == nil:
						delivered[key]++
					case errors.Is(r.Err, ErrRefused) && errors.Is(r.Err, errClosedKey) &&
						!errors.Is(r.Err, ErrMaybeStored) && !errors.Is(r.Err, ErrRefusedCaller):
						refused[key]++
					default:
						t.Error(r.Err)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.Flush(ctx); err != nil {
			t.Error(err)
		}
		if delivered["a"] != 50 || delivered["c"] != 50 || refused["b"] != 50 {
			t.Errorf("delivered %v, refused %v", delivered, refused)
		}
		n.closed = ""
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "b", Data: []byte("1")},
			func(r Result) { delivered["b"]++ }); err != nil {
			t.Error(err)
		}
		closeNow(t, p, ctx)
		if len(n.open) > 0 || delivered["b"] != 1 {
			t.Errorf("%d units are open, delivered %v", len(n.open), delivered)
		}
		inOrder(t, s.read(t, true))
	})
}
