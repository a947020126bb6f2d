package rolluptest

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// Target is a table that is not there yet.
type Target struct {
	// Open returns a store of the table, as another process would.
	Open func() (rollup.RowStore, error)
	// Bad returns the kept data of the bad records, by shard and position with a space between
	// them.
	Bad func(context.Context) (map[string]string, error)
}

// definition has each type as a key and as a column.
var definition = rollup.Definition{
	Keys: []rollup.Field{
		{Name: "text_key", Pointer: "/a"},
		{Name: "int_key", Pointer: "/b", Type: rollup.Int},
		{Name: "double_key", Pointer: "/c", Type: rollup.Double},
	},
	Bucket: 500 * time.Millisecond,
	Columns: []rollup.Column{
		{Op: rollup.Count},
		{Op: rollup.Sum, Field: rollup.Field{Pointer: "/n", Type: rollup.Int}},
		{Op: rollup.Max, Field: rollup.Field{Pointer: "/n"}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/t"}},
	},
}.WithDefaults()

var setup = rollup.Setup{App: "app", Stream: "orders@1", Definition: definition}

// Run runs the suite. target returns another table for each call.
func Run(t *testing.T, target func(t *testing.T) Target) {
	for name, test := range map[string]func(*testing.T, Target){
		"values":     testValues,
		"conditions": testConditions,
		"many":       testMany,
		"race":       testRace,
		"setup":      testSetup,
		"bad":        testBad,
	} {
		t.Run(name, func(t *testing.T) { test(t, target(t)) })
	}
}

// prepared returns a store that can be used.
func prepared(t *testing.T, target Target) rollup.RowStore {
	t.Helper()
	store, err := target.Open()
	if err == nil {
		err = store.Prepare(t.Context(), setup)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// newRow returns a row with the version 1.
func newRow(text string, double float64, integer int64) rollup.StoredRow {
	at := time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)
	row := rollup.StoredRow{
		Row: rollup.Row{
			Keys:   []rollup.Value{{Text: text}, {Int: integer}, {Double: double}},
			Bucket: at,
			Values: []rollup.Value{{Int: 1}, {Int: integer}, {Double: double}, {Text: text}},
			Order: rollup.Order{
				Time: at.Add(1), Arrival: at.Add(time.Hour), Shard: "shardId-000000000003",
				Position: runnel.Position{Sequence: "12345", Sub: 6},
			},
		},
		Version: 1,
		Entries: map[string]string{"0": "end", "3": "005-12345-0000000006"},
	}
	row.Key = definition.RowKey(&row.Row)
	return row
}

func readOne(t *testing.T, store rollup.RowStore, key string) rollup.StoredRow {
	t.Helper()
	rows, err := store.Read(t.Context(), []string{key})
	if err != nil || len(rows) != 1 {
		t.Fatalf("read %q: %d rows, %v", key, len(rows), err)
	}
	return rows[0]
}

// testValues writes values at the ends of their types, and reads them in another process.
func testValues(t *testing.T, target Target) {
	store, other := prepared(t, target), prepared(t, target)
	rows := []rollup.StoredRow{
		newRow("", 0, 0),
		newRow("a|b\\c \u2603\n", -1.5, math.MaxInt64),
		newRow(strings.Repeat("x", 1024), 0.1, math.MinInt64),
	}
	for _, double := range []float64{
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e126, 9e125, 9.1e125,
		1e125, -1e126, 1e-129, 1e-130, 1e-131, 1 / 3.0, 1e21, 12345678901234567,
	} {
		rows = append(rows, newRow("double", double, 7))
	}
	expiring := newRow("expires", 1, 1)
	expiring.Expires = time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)
	rows = append(rows, expiring)
	for _, row := range rows {
		if err := store.Write(t.Context(), row, 0); err != nil {
			t.Fatalf("write %q: %v", row.Key, err)
		}
		if got := readOne(t, other, row.Key); !reflect.DeepEqual(got, row) {
			t.Errorf("read\n%+v, wrote\n%+v", got, row)
		}
	}
	again := expiring
	again.Version, again.Expires = 2, time.Time{}
	again.Entries = map[string]string{"3": "end"}
	if err := store.Write(t.Context(), again, 1); err != nil {
		t.Fatal(err)
	}
	if got := readOne(t, other, again.Key); !reflect.DeepEqual(got, again) {
		t.Errorf("an update leaves\n%+v, want\n%+v", got, again)
	}
}

// testConditions writes over the right version and over others.
func testConditions(t *testing.T, target Target) {
	store, row := prepared(t, target), newRow("a", 1, 1)
	write := func(version, over int64, want error) {
		t.Helper()
		row.Version = version
		if err := store.Write(t.Context(), row, over); !errors.Is(err, want) {
			t.Errorf("version %d over %d: %v, want %v", version, over, err, want)
		}
	}
	write(8, 7, rollup.ErrConflict) // absent
	if got := readOne(t, store, row.Key); got.Version != 0 {
		t.Errorf("an absent row is %+v", got)
	}
	write(7, 0, nil)
	write(1, 0, rollup.ErrConflict)
	write(9, 8, rollup.ErrConflict)
	write(8, 7, nil)
	write(8, 7, rollup.ErrConflict)
	if got := readOne(t, store, row.Key); got.Version != 8 {
		t.Errorf("version %d, want 8", got.Version)
	}
}

// testMany reads rows of which some are absent, in the order of the keys.
func testMany(t *testing.T, target Target) {
	store := prepared(t, target)
	var keys []string
	for i := range 150 {
		row := newRow("many", 0, int64(i))
		keys = append(keys, row.Key)
		if i%3 == 0 {
			continue
		}
		if err := store.Write(t.Context(), row, 0); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := store.Read(t.Context(), keys)
	if err != nil || len(rows) != len(keys) {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for i, row := range rows {
		if present := row.Version > 0; present != (i%3 != 0) || present && row.Key != keys[i] {
			t.Errorf("row %d is %+v", i, row)
		}
	}
}

// testRace has writers raise one row's count, each with its own store.
func testRace(t *testing.T, target Target) {
	const writers, each = 6, 20
	key := newRow("race", 1, 1).Key
	var group sync.WaitGroup
	for range writers {
		store := prepared(t, target)
		group.Go(func() {
			for done := 0; done < each; {
				rows, err := store.Read(t.Context(), []string{key})
				if err != nil {
					t.Error(err)
					return
				}
				row, over := rows[0], rows[0].Version
				if over == 0 {
					row = newRow("race", 1, 1)
					row.Values[0].Int = 0
				}
				row.Version = over + 1
				row.Values[0].Int++
				switch err := store.Write(t.Context(), row, over); {
				case err == nil:
					done++
				case !errors.Is(err, rollup.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := readOne(t, prepared(t, target), key); got.Values[0].Int != writers*each {
		t.Errorf("the count is %d, want %d", got.Values[0].Int, writers*each)
	}
}

// testSetup prepares one table again and again, also for other rollups.
func testSetup(t *testing.T, target Target) {
	prepared(t, target)
	changed := definition
	changed.Bucket = time.Hour
	for _, c := range []struct {
		setup rollup.Setup
		want  []string
	}{
		{setup, nil},
		{rollup.Setup{App: "b", Stream: "orders@1", Definition: definition}, []string{"app", "b"}},
		{
			rollup.Setup{App: "app", Stream: "orders@2", Definition: definition},
			[]string{"orders@1", "orders@2"},
		},
		{
			rollup.Setup{App: "app", Stream: "orders@1", Definition: changed},
			[]string{definition.String(), changed.String()},
		},
		{rollup.Setup{App: "app", Stream: "orders@1", Definition: definition, Expires: true}, nil},
	} {
		store, err := target.Open()
		if err != nil {
			t.Fatal(err)
		}
		err = store.Prepare(t.Context(), c.setup)
		if c.want == nil {
			if err != nil {
				t.Errorf("%+v: %v", c.setup, err)
			}
			continue
		}
		if !errors.Is(err, rollup.ErrOtherSetup) || !errors.Is(err, rollup.ErrLasting) {
			t.Errorf("%+v: %v, want ErrOtherSetup", c.setup, err)
			continue
		}
		for _, side := range c.want {
			if !strings.Contains(err.Error(), side) {
				t.Errorf("%v: lacks %q", err, side)
			}
		}
	}
}

// testBad keeps records, some of them twice.
func testBad(t *testing.T, target Target) {
	store := prepared(t, target)
	want := map[string]string{}
	for i, data := range []string{"", "x", "\x00\xff", "x", strings.Repeat("y", 500<<10)} {
		record := &runnel.Record{
			Data: []byte(data), PartitionKey: "k", ShardID: "shardId-000000000001",
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(strconv.Itoa(8 + i))},
			ArrivalTime: time.UnixMilli(1_700_000_000_000),
		}
		for range 1 + i%2 {
			err := store.KeepBad(t.Context(), rollup.BadRecord{Record: record, Reason: "it is bad"})
			if err != nil {
				t.Fatalf("%.9q: %v", data, err)
			}
		}
		want["shardId-000000000001 "+record.Position.SortText()] = data
	}
	got, err := target.Bad(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d bad records are kept, want %d: %v", len(got), len(want), err)
	}
	for id, data := range want {
		kept, found := got[id]
		whole := kept == data || len(kept) >= 300<<10 && strings.HasPrefix(data, kept)
		if !found || !whole {
			t.Errorf("%s: %d bytes are kept, want %d", id, len(kept), len(data))
		}
	}
}
