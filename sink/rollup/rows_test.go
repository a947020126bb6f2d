package rollup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink"
)

// memory is a store in memory, which fails calls as a test wants.
type memory struct {
	mu       sync.Mutex
	rows     map[string]StoredRow
	bad      map[string]string // reason by position
	setup    Setup
	reads    int               // rows that were read
	writes   int               // calls of Write
	flying   int               // calls of Write under way
	most     int               // the largest number of them
	fail     func(error) error // changes the outcome of a call of Write; nil: none
	failBad  error
	failRead error
}

func newMemory() *memory {
	return &memory{rows: map[string]StoredRow{}, bad: map[string]string{}}
}

func (m *memory) String() string { return "table t" }

func (m *memory) Prepare(_ context.Context, setup Setup) error {
	if m.setup.App != "" {
		return setup.Check(m.setup.App, m.setup.Stream, m.setup.Definition.String())
	}
	m.setup = setup
	return nil
}

func (m *memory) Read(_ context.Context, keys []string) ([]StoredRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := make([]StoredRow, len(keys))
	for i, key := range keys {
		rows[i] = m.rows[key]
	}
	m.reads += len(keys)
	return rows, m.failRead
}

func (m *memory) Write(ctx context.Context, row StoredRow, over int64) (err error) {
	m.mu.Lock()
	m.writes++
	m.flying++
	m.most = max(m.most, m.flying)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.flying--
		m.mu.Unlock()
	}()
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[row.Key].Version != over {
		err = ErrConflict
	}
	if m.fail != nil {
		var lost *lostError
		if failed := m.fail(err); failed != nil && !errors.As(failed, &lost) {
			return failed
		} else if failed != nil && err == nil {
			m.rows[row.Key] = row
			return failed
		}
	}
	if err == nil {
		m.rows[row.Key] = row
	}
	return err
}

// lostError is the outcome of a write that takes effect and is not answered.
type lostError struct{}

func (*lostError) Error() string { return "no answer" }

func (m *memory) KeepBad(_ context.Context, bad BadRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad[bad.Record.Position.String()] = bad.Reason
	return m.failBad
}

// shards is a Kinesis API that lists shards, each with its parents.
type shards struct {
	parents map[string][]string
	calls   int
	err     error
}

func (s *shards) DescribeStreamSummary(
	_ context.Context, in *kinesis.DescribeStreamSummaryInput, _ ...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	return &kinesis.DescribeStreamSummaryOutput{
		StreamDescriptionSummary: &types.StreamDescriptionSummary{
			StreamName: in.StreamName, StreamCreationTimestamp: aws.Time(time.UnixMilli(1234)),
		},
	}, s.err
}

func (s *shards) ListShards(
	context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	s.calls++
	out := &kinesis.ListShardsOutput{}
	for id, parents := range s.parents {
		shard := types.Shard{
			ShardId: aws.String(id),
			HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String("0"), EndingHashKey: aws.String("1"),
			},
			SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("1")},
		}
		if len(parents) > 0 {
			shard.ParentShardId = &parents[0]
		}
		if len(parents) > 1 {
			shard.AdjacentParentShardId = &parents[1]
		}
		out.Shards = append(out.Shards, shard)
	}
	return out, s.err
}

const (
	shard0 = "shardId-000000000000"
	shard1 = "shardId-000000000001"
	shard2 = "shardId-000000000002"
)

// openRows returns Rows over a memory, with the shard 2 below 1 below 0.
func openRows(t *testing.T, m *memory, change ...func(*RowsConfig)) *Rows {
	t.Helper()
	cfg := RowsConfig{
		Definition: simDefinition, Store: m, App: "app", Stream: "orders",
		Kinesis: &shards{parents: map[string][]string{shard0: nil, shard1: {shard0}, shard2: {shard1}}},
	}
	for _, c := range change {
		c(&cfg)
	}
	rows, err := OpenRows(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// batchOf returns records of a shard with the sequence numbers from first on.
func batchOf(shard runnel.ShardID, first int, data ...string) *consumer.Batch {
	b := &consumer.Batch{Stream: "orders", ShardID: shard}
	for i, text := range data {
		b.Records = append(b.Records, runnel.Record{
			Data: []byte(text), ShardID: shard, PartitionKey: "p",
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(first + i))},
			ArrivalTime: time.UnixMilli(int64(first + i)).UTC(),
		})
	}
	return b
}

func handle(t *testing.T, r *Rows, batches ...*consumer.Batch) {
	t.Helper()
	for _, b := range batches {
		if err := r.Handle(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// show returns a row as count, sum, min, max and last.
func (m *memory) show(key string) string {
	var values []string
	for _, v := range m.rows[key].Values {
		values = append(values, fmt.Sprint(v.Int))
	}
	return strings.Join(values, " ")
}

func wantRow(t *testing.T, m *memory, key, want string) {
	t.Helper()
	if got := m.show(key); got != want {
		t.Errorf("row %s has %s, want %s", key, got, want)
	}
}

const (
	a1 = `{"k":"a","v":1}`
	a2 = `{"k":"a","v":2}`
	b5 = `{"k":"b","v":5}`
)

// TestHandle reads batches again that are cut differently, in one process and in a new one.
func TestHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m)
		handle(t, r, batchOf(shard0, 7, a1, b5, a2))
		wantRow(t, m, "a", "2 3 1 2 2")
		wantRow(t, m, "b", "1 5 5 5 5")
		row := m.rows["a"]
		if row.Version < 1 || row.Entries["0"] != "001-9-0000000000" || len(row.Entries) != 1 {
			t.Errorf("%+v", row)
		}
		if m.rows["b"].Entries["0"] != "001-8-0000000000" || m.rows["b"].Version == row.Version {
			t.Errorf("%+v", m.rows["b"])
		}
		writes := m.writes
		handle(t, r, batchOf(shard0, 7, a1, b5, a2), batchOf(shard0, 9, a2))
		if m.writes != writes {
			t.Errorf("%d writes of what is there", m.writes-writes)
		}
		for _, r := range []*Rows{r, openRows(t, m)} {
			handle(t, r, batchOf(shard0, 8, b5, a2, a1, b5))
			wantRow(t, m, "a", "3 4 1 2 1")
			wantRow(t, m, "b", "2 10 5 5 5")
		}
		if got := m.rows["a"].Version; got != row.Version+1 {
			t.Errorf("version %d after %d", got, row.Version)
		}
	})
}

// TestReadsAreSaved counts the reads of rows that this process wrote last.
func TestReadsAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r, other := openRows(t, m), openRows(t, m)
		handle(t, r, batchOf(shard0, 1, a1, b5), batchOf(shard0, 3, a1, b5), batchOf("shardId-8", 1, a2))
		if m.reads != 2 {
			t.Errorf("%d reads, want one of each row", m.reads)
		}
		handle(t, other, batchOf("shardId-7", 1, a2)) // r's copy is now old
		m.reads = 0
		handle(t, r, batchOf(shard0, 5, a1))
		if wantRow(t, m, "a", "5 7 1 2 1"); m.reads != 1 {
			t.Errorf("%d reads after a conflict, want 1", m.reads)
		}
	})
}

// TestAncestors writes the rows of a parent as its grandchild, and as the paused parent.
func TestAncestors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m)
		handle(t, r, batchOf(shard0, 1, a1), batchOf(shard1, 2, b5), batchOf(shard2, 3, a2, b5))
		for key, want := range map[string]map[string]string{
			"a": {"0": "end", "2": "001-3-0000000000"},
			"b": {"1": "end", "2": "001-4-0000000000"},
		} {
			if got := m.rows[key].Entries; !maps.Equal(got, want) {
				t.Errorf("row %s has the entries %v, want %v", key, got, want)
			}
		}
		handle(t, openRows(t, m), batchOf(shard0, 1, a1, a2))
		wantRow(t, m, "a", "2 3 1 2 2")
		lists := r.cfg.Kinesis.(*shards)
		handle(t, r, batchOf(shard1, 9, a1), batchOf(shard2, 9, a1), batchOf("shardId-9", 9, a1))
		if lists.calls != 1 {
			t.Errorf("%d lists of shards, want 1", lists.calls)
		}
		if m.rows["a"].Entries["shardId-9"] != "" || m.rows["a"].Entries["9"] == "" {
			t.Errorf("%v", m.rows["a"].Entries)
		}
		lists.parents["shardId-9"] = []string{shard2}
		time.Sleep(time.Minute)
		handle(t, r, batchOf("shardId-9", 10, a1))
		if m.rows["a"].Entries["2"] != "end" {
			t.Errorf("after a new list: %v", m.rows["a"].Entries)
		}
		time.Sleep(time.Minute)
		handle(t, r, batchOf(shard2, 11, b5), batchOf("shardId-9", 11, a1))
		if lists.calls != 2 {
			t.Errorf("%d lists of shards, want 2: those of known shards are kept", lists.calls)
		}
	})
}

// TestLostAnswers loses the answers of all first attempts.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		lost := true
		m.fail = func(error) error {
			if lost = !lost; !lost {
				return &lostError{}
			}
			return nil
		}
		r := openRows(t, m, func(c *RowsConfig) { c.Parallel = 1 })
		for i := range 5 {
			handle(t, r, batchOf(shard0, 1+2*i, a1, a2))
		}
		wantRow(t, m, "a", "10 15 1 2 2")
	})
}

// TestFailures shows which errors are tried again, and for how long.
func TestFailures(t *testing.T) {
	outage := errors.New("outage")
	for _, c := range []struct {
		name   string
		err    error
		writes int
	}{
		{"outage", outage, attempts},
		{"conflict", ErrConflict, attempts},
		{"lasting", Lasting(outage), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			r := openRows(t, m)
			handle(t, r, batchOf(shard0, 1, a1))
			m.fail = func(error) error { return c.err }
			began := time.Now()
			err := r.Handle(t.Context(), batchOf(shard0, 2, a1))
			if !errors.Is(err, c.err) || m.writes != 1+c.writes {
				t.Errorf("%s: %v after %d writes, want %d", c.name, err, m.writes-1, c.writes)
			}
			if _, found := r.cache.get("a"); found {
				t.Errorf("%s: the row is in the cache", c.name)
			}
			if text := fmt.Sprint(err); !strings.HasPrefix(text, `row "a" of table t: `) {
				t.Error(text)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: after %s", c.name, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.failRead = outage
		err := openRows(t, m).Handle(t.Context(), batchOf(shard0, 1, a1, b5))
		if !errors.Is(err, outage) || m.reads != 2*attempts {
			t.Errorf("%v after %d reads", err, m.reads)
		}
		m.failRead, m.failBad = nil, outage
		if err := openRows(t, m).Handle(t.Context(), batchOf(shard0, 1, "bad")); !errors.Is(err, outage) {
			t.Error(err)
		}
	})
}

// TestStops shows that a worker that is stopped does not wait for an outage.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.fail = func(error) error { return errors.New("outage") }
		stopping := make(chan struct{})
		time.AfterFunc(100*time.Millisecond, func() { close(stopping) })
		began := time.Now()
		err := openRows(t, m).Handle(sink.WithStopping(t.Context(), stopping), batchOf(shard0, 1, a1))
		if took := time.Since(began); err == nil || took > 200*time.Millisecond {
			t.Errorf("%v after %s", err, took)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := openRows(t, m).Handle(over, batchOf(shard0, 1, a1)); err == nil {
			t.Error("no error after the context's end")
		}
	})
}

// TestBad skips records, or stops at the first one.
func TestBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		batch := batchOf(shard0, 1, a1, "x", a2, `{"k":"a"}`)
		m := newMemory()
		var mu sync.Mutex
		var skipped []string
		r := openRows(t, m, func(c *RowsConfig) {
			c.OnBad = func(b BadRecord) {
				mu.Lock()
				defer mu.Unlock()
				skipped = append(skipped, b.Record.Position.String()+" "+b.Reason)
			}
		})
		handle(t, r, batch)
		wantRow(t, m, "a", "2 3 1 2 2")
		want := map[string]string{"2": "it is not JSON in UTF-8", "4": "it has no /v"}
		if !maps.Equal(m.bad, want) || len(skipped) != 2 {
			t.Errorf("kept %v, skipped %v", m.bad, skipped)
		}
		stopped := newMemory()
		r = openRows(t, stopped, func(c *RowsConfig) { c.Bad = StopAtBad })
		err := r.Handle(t.Context(), batch)
		const text = "the record at 2 of shardId-000000000000 stops the rollup: bad record: it is " +
			"not JSON in UTF-8"
		if !errors.As(err, new(*BadRecordError)) || !strings.Contains(err.Error(), text) {
			t.Error(err)
		}
		if len(stopped.rows)+len(stopped.bad) != 0 {
			t.Errorf("stopped: %v, %v", stopped.rows, stopped.bad)
		}
	})
}

// TestOverflow has records that only the stored row can judge.
func TestOverflow(t *testing.T) {
	huge, down := `{"k":"a","v":9223372036854775807}`, `{"k":"a","v":-9223372036854775807}`
	five := `{"k":"a","v":-5}`
	for _, c := range []struct {
		name   string
		before []string // are in the row at 1 and on
		first  int
		data   []string
		want   string
		bad    []string
	}{
		{
			"in the row",
			[]string{huge},
			1,
			[]string{huge, a1, five, a2},
			"3 9223372036854775804 -5 9223372036854775807 2",
			[]string{"2"},
		},
		{
			"in the batch alone",
			[]string{down},
			11,
			[]string{huge, a2},
			"3 2 -9223372036854775807 9223372036854775807 2", nil,
		},
		{
			"in a new row", nil, 11,
			[]string{huge, a1, a2, down},
			"2 0 -9223372036854775807 9223372036854775807 -9223372036854775807",
			[]string{"12", "13"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			r := openRows(t, m)
			if c.before != nil {
				handle(t, r, batchOf(shard0, 1, c.before...))
			}
			handle(t, r, batchOf(shard0, c.first, c.data...))
			wantRow(t, m, "a", c.want)
			if kept := slices.Sorted(maps.Keys(m.bad)); !slices.Equal(kept, c.bad) {
				t.Errorf("%s: kept %v, want %v", c.name, m.bad, c.bad)
			}
			for _, reason := range m.bad {
				if !strings.Contains(reason, "sum_v: "+ErrOverflow.Error()) {
					t.Error(reason)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m, func(c *RowsConfig) { c.Bad = StopAtBad })
		handle(t, r, batchOf(shard0, 1, huge))
		err := r.Handle(t.Context(), batchOf(shard0, 2, a1))
		if !errors.As(err, new(*BadRecordError)) || m.rows["a"].Values[0].Int != 1 || len(m.bad) > 0 {
			t.Errorf("%v, and the row has %s", err, m.show("a"))
		}
	})
}

// TestRowTooLarge stops a shard before the database does.
func TestRowTooLarge(t *testing.T) {
	d := Definition{
		Keys:    []Field{{Pointer: "/k"}},
		Columns: []Column{{Op: Last, Field: Field{Pointer: "/v"}}},
	}
	value := func(n int) string { return fmt.Sprintf(`{"k":"a","v":%q}`, strings.Repeat("x", n)) }
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m, func(c *RowsConfig) { c.Definition = d })
		handle(t, r, batchOf(shard0, 1, value(MaxRow-500)))
		err := r.Handle(t.Context(), batchOf(shard0, 2, value(MaxRow)))
		if !errors.Is(err, ErrRowTooLarge) || !errors.Is(err, ErrLasting) || !strings.Contains(err.Error(), `row "a" of table t: `) ||
			!strings.Contains(err.Error(), "307206 of them for the column last_v, and 307200") {
			t.Error(err)
		}
		row := m.rows["a"]
		row.Entries = maps.Clone(row.Entries)
		for i := range 5000 {
			row.Entries[fmt.Sprint(100+i)] = runnel.Position{Sequence: "1"}.SortText()
		}
		row.Values = []Value{{Text: "x"}}
		m.rows["a"], row.Version = row, 9
		for name := range m.rows["a"].Entries {
			row.Entries[name] = strings.Repeat("9", 60)
		}
		if _, err := d.WithDefaults().checkSize(&row); err == nil ||
			!strings.Contains(err.Error(), "for the positions of 5001 shards") {
			t.Error(err)
		}
	})
}

// TestExpires gives rows a time from which they may be deleted.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is 2000-01-01 00:00 in the bubble
		d := simDefinition
		d.Bucket, d.Time = time.Hour, "/t"
		m := newMemory()
		handle(t, openRows(t, m, func(c *RowsConfig) { c.Definition, c.TTL = d, 24*time.Hour }),
			batchOf(shard0, 1, `{"k":"a","v":1,"t":"1999-06-01T10:30:00Z"}`,
				`{"k":"a","v":1,"t":"2000-01-05T10:30:00Z"}`))
		for key, want := range map[string]string{
			"a|1999-06-01T10:00:00Z": "2000-01-02T00:00:00Z",
			"a|2000-01-05T10:00:00Z": "2000-01-06T11:00:00Z",
		} {
			if got := m.rows[key].Expires.Format(time.RFC3339); got != want || !m.setup.Expires {
				t.Errorf("%s expires %s, want %s", key, got, want)
			}
		}
		m = newMemory()
		handle(t, openRows(t, m), batchOf(shard0, 1, a1))
		if !m.rows["a"].Expires.IsZero() || m.setup.Expires {
			t.Error("a row expires without a TTL")
		}
	})
}

// TestDeletedRow deletes a row that another process then makes again. The first process has the row
// in its cache, and must not write over the new one.
func TestDeletedRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m)
		handle(t, r, batchOf(shard0, 1, a1))
		delete(m.rows, "a")
		handle(t, openRows(t, m), batchOf(shard1, 1, a2))
		handle(t, r, batchOf(shard0, 2, a2))
		wantRow(t, m, "a", "2 4 2 2 2")
	})
}

// TestDamagedEntry stops at an entry that is no position.
func TestDamagedEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rows["a"] = StoredRow{Version: 1, Entries: map[string]string{"0": "x"}}
		err := openRows(t, m).Handle(t.Context(), batchOf(shard0, 1, a1))
		if !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrLasting) ||
			!strings.Contains(err.Error(), `row "a" of table t: `) || m.writes > 0 {
			t.Error(err)
		}
	})
}

// TestParallel bounds the writes of several shards together.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := openRows(t, m, func(c *RowsConfig) { c.Parallel = 5 })
		var group sync.WaitGroup
		began := time.Now()
		for shard := range 3 {
			var data []string
			for i := range 150 {
				data = append(data, fmt.Sprintf(`{"k":"%d","v":1}`, i))
			}
			group.Go(func() { handle(t, r, batchOf(runnel.ShardID(fmt.Sprint(shard)), 1, data...)) })
		}
		group.Wait()
		took := time.Since(began) // a write takes a millisecond
		if m.most != 5 || len(m.rows) != 150 || took < 90*time.Millisecond || took > 135*time.Millisecond {
			t.Errorf("%d writes at once, %d rows, after %s", m.most, len(m.rows), took)
		}
		if m.writes != 450 {
			t.Errorf("%d writes, want 450: shards of one process do not conflict", m.writes)
		}
	})
}

func TestRowKey(t *testing.T) {
	d := Definition{
		Keys:    []Field{{Pointer: "/a"}, {Pointer: "/b", Type: Int}, {Pointer: "/c", Type: Double}},
		Columns: []Column{{Op: Count}},
	}.WithDefaults()
	at := time.Date(2026, 1, 2, 3, 4, 5, 25e6, time.UTC)
	for _, c := range []struct {
		text   string
		bucket time.Duration
		want   string
	}{
		{"#en", 0, "#en|-7|0.1"},
		{"", time.Second, `\e|-7|0.1|2026-01-02T03:04:05Z`},
		{`|\`, 25 * time.Millisecond, `\|\\|-7|0.1|2026-01-02T03:04:05.025Z`},
		{`\e`, 0, `\\e|-7|0.1`},
	} {
		d.Bucket = c.bucket
		row := Row{Keys: []Value{{Text: c.text}, {Int: -7}, {Double: 0.1}}, Bucket: at}
		if got := d.RowKey(&row); got != c.want {
			t.Errorf("%q is the key %s, want %s", c.text, got, c.want)
		}
	}
	only := Definition{Keys: []Field{{Pointer: "/a"}, {Pointer: "/b"}}}.WithDefaults()
	seen := map[string][]Value{}
	texts := []string{"", `\`, "|", `\e`, "e", "a", `a\`, "a|", "|a", `\|`, `\\`, "table", `\table`}
	for _, a := range texts {
		for _, b := range texts {
			row := Row{Keys: []Value{{Text: a}, {Text: b}}}
			key := only.RowKey(&row)
			if seen[key] != nil || key == SetupKey {
				t.Errorf("%q and %q have the key of %v: %s", a, b, seen[key], key)
			}
			seen[key] = row.Keys
		}
	}
}

// TestLongKey has a key that no table takes.
func TestLongKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		define := func(c *RowsConfig) {
			c.Definition = Definition{
				Keys:    []Field{{Pointer: "/k"}, {Pointer: "/l"}},
				Columns: []Column{{Op: Count}},
			}
		}
		r := openRows(t, m, define)
		long := func(n int) string {
			return fmt.Sprintf(`{"k":%q,"l":%q}`, strings.Repeat("|", 512), strings.Repeat("x", n))
		}
		handle(t, r, batchOf(shard0, 1, long(1023), long(1024), "x", long(1024)))
		if len(m.rows) != 1 || len(m.bad) != 3 ||
			m.bad["2"] != "the key of its row has 2049 bytes, and a table takes 2048" {
			t.Errorf("%d rows, bad: %v", len(m.rows), m.bad)
		}
		r = openRows(t, newMemory(), define, func(c *RowsConfig) { c.Bad = StopAtBad })
		err := r.Handle(t.Context(), batchOf(shard0, 1, long(1), long(1024), "x"))
		if err == nil || !strings.Contains(err.Error(), "the record at 2 of") {
			t.Error(err)
		}
	})
}

func TestRowCache(t *testing.T) {
	c := newRowCache(100)
	put := func(key string, version int64, size int) {
		c.put(StoredRow{Key: key, Version: version}, size)
	}
	want := func(what string, keys ...string) {
		t.Helper()
		var has []string
		for key := range c.byKey {
			has = append(has, key)
		}
		if slices.Sort(has); !slices.Equal(has, keys) || c.order.Len() != len(keys) {
			t.Errorf("%s: it has %v, want %v", what, has, keys)
		}
	}
	put("a", 1, 40)
	put("b", 1, 40)
	if row, found := c.get("a"); !found || row.Version != 1 {
		t.Errorf("%+v, %v", row, found)
	}
	put("c", 1, 40)
	want("the one that was used last stays", "a", "c")
	put("a", 2, 60)
	want("a larger one", "a", "c")
	if row, _ := c.get("a"); row.Version != 2 || c.bytes != 100 {
		t.Errorf("%+v, %d bytes", row, c.bytes)
	}
	put("d", 1, 101)
	want("one above the limit")
	if put("e", 1, 100); c.bytes != 100 {
		t.Errorf("%d bytes", c.bytes)
	}
	c.forget("e")
	c.forget("e")
	if want("forgotten"); c.bytes != 0 {
		t.Errorf("%d bytes", c.bytes)
	}
}

func TestOpenRows(t *testing.T) {
	m := newMemory()
	openRows(t, m)
	want := Setup{App: "app", Stream: "orders@1234", Definition: simDefinition}
	if !reflect.DeepEqual(m.setup, want) {
		t.Errorf("%+v, want %+v", m.setup, want)
	}
	cfg := RowsConfig{
		Definition: simDefinition, Store: m, App: "other", Stream: "orders", Kinesis: &shards{},
	}
	_, err := OpenRows(t.Context(), cfg)
	const text = "prepare table t: the table belongs to another rollup: its application is app, and " +
		"this one is other: use another table, or the application that it has"
	if !errors.Is(err, ErrOtherSetup) || !strings.HasPrefix(err.Error(), text) {
		t.Error(err)
	}
	for what, setup := range map[string]Setup{
		"stream":     {App: "app", Stream: "orders@1235", Definition: simDefinition},
		"definition": {App: "app", Stream: "orders@1234", Definition: benchDefinition},
	} {
		err := setup.Check("app", "orders@1234", simDefinition.String())
		if !errors.Is(err, ErrOtherSetup) || !strings.Contains(err.Error(), "its "+what+" is ") {
			t.Errorf("another %s: %v", what, err)
		}
	}
	gone := errors.New("gone")
	cfg.Kinesis = &shards{err: gone}
	if _, err := OpenRows(t.Context(), cfg); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestRowsValidate(t *testing.T) {
	_, err := OpenRows(t.Context(), RowsConfig{
		Definition: Definition{
			Keys:    []Field{{Name: "version", Pointer: "/v"}, {Pointer: "/pk"}},
			Columns: []Column{{Op: Max, Field: Field{Name: "_id", Pointer: "/x"}}},
		},
		TTL: -1, Bad: 2, Parallel: -1, CacheBytes: -1,
	})
	for _, want := range []string{
		`the name "version" is that of an attribute which each row has`, `the name "pk" is`,
		`the name "_id" is`, "Store is missing", "Kinesis is missing", "App is missing",
		"Stream is missing", "TTL is -1ns", "Bad is 2: want SkipBad or StopAtBad", "Parallel is -1",
		"CacheBytes is -1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	_, err = OpenRows(t.Context(), RowsConfig{})
	if err == nil || !strings.Contains(err.Error(), "there is no column") {
		t.Error(err)
	}
}

// TestReason cuts the text of any error.
func TestReason(t *testing.T) {
	got := reason(errors.New("x" + strings.Repeat("é", 3000) + "\xff"))
	if len(got) > mostReason+2 || !strings.HasSuffix(got, "é\ufffd") {
		t.Errorf("%d bytes, which end with %q", len(got), got[len(got)-6:])
	}
	if got := reason(&BadError{Reason: "r", Err: ErrOverflow}); got != "r" {
		t.Error(got)
	}
}
