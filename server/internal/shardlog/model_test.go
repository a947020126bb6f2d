package shardlog

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// modelShard is a shard as it should be.
type modelShard struct {
	records []Record // all, from index 1 on
	oldest  uint64
	sealed  bool
}

func (m *modelShard) next() uint64 { return uint64(len(m.records)) + 1 }

// model runs random operations on an engine and on a simple model.
type model struct {
	setup  setup
	engine *engine
	clock  *clock
	shards map[ID]*modelShard
	lastID ID
}

// Random operations, checkpoints and restarts: the store and the model always agree.
func TestModel(t *testing.T) {
	for range 4 * soak() {
		rapid.Check(t, func(rt *rapid.T) {
			m := &model{clock: new(clock), shards: map[ID]*modelShard{}}
			m.clock.ms.Store(1_000_000)
			m.setup = setup{
				fs:          vfs.NewMem(),
				now:         m.clock.now,
				segmentSize: rapid.SampledFrom([]int64{4 << 10, 20 << 10, 1 << 20}).Draw(rt, "segment"),
				openFiles:   rapid.SampledFrom([]int{4, 64}).Draw(rt, "files"),
				places:      rapid.SampledFrom([]int{1024, 1 << 20}).Draw(rt, "places"),
				delay:       rapid.SampledFrom([]time.Duration{1, time.Millisecond}).Draw(rt, "delay"),
			}
			m.engine = m.setup.mustOpen(t)
			defer func() { m.engine.shut(t) }()
			rt.Repeat(map[string]func(*rapid.T){
				"create":     m.create,
				"append":     m.append,
				"appendMore": m.append,
				"read":       m.read,
				"find":       m.find,
				"seal":       m.seal,
				"delete":     m.delete,
				"trim":       m.trim,
				"tick":       m.tick,
				"checkpoint": m.checkpoint,
				"drain":      func(*rapid.T) { m.engine.drained(t) },
				"reopen":     func(rt *rapid.T) { m.reopen(t, rt) },
				"":           m.check,
			})
			m.checkAll(rt)
			m.reopen(t, rt)
			m.checkAll(rt)
		})
	}
}

func (m *model) pick(rt *rapid.T) (ID, *modelShard, *Shard) {
	var ids []ID
	for id := range m.shards {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		rt.Skip("no shard")
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	id := rapid.SampledFrom(ids).Draw(rt, "shard")
	return id, m.shards[id], m.engine.store.Shard(id)
}

func (m *model) create(rt *rapid.T) {
	if len(m.shards) >= 6 {
		rt.Skip("enough")
	}
	m.lastID++
	m.shards[m.lastID] = &modelShard{oldest: 1}
	m.must(rt, m.engine.do(context.Background(), opCreate, m.lastID))
}

func (m *model) must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatal(err)
	}
}

func (m *model) append(rt *rapid.T) {
	id, want, _ := m.pick(rt)
	size := rapid.SampledFrom([]int{1, 100, 1000, 70_000}).Draw(rt, "size")
	count := rapid.IntRange(1, max(1, min(20, 10_000/size))).Draw(rt, "count")
	batch := entries(id, len(want.records), count, size)
	numbers, err := m.engine.append(context.Background(), id, batch...)
	if want.sealed {
		if err == nil {
			rt.Fatal("a sealed shard took records")
		}
		return
	}
	m.must(rt, err)
	arrival := m.clock.ms.Load()
	if n := len(want.records); n > 0 {
		arrival = max(arrival, want.records[n-1].Arrival)
	}
	for i, e := range batch {
		number := Number{want.next(), want.next(), arrival}
		if numbers[i] != number {
			rt.Fatalf("record %d is %+v, not %+v", i, numbers[i], number)
		}
		want.records = append(want.records, Record{number, e.PartitionKey, e.Data})
	}
}

func (m *model) read(rt *rapid.T) {
	_, want, sh := m.pick(rt)
	from := uint64(rapid.IntRange(0, len(want.records)+2).Draw(rt, "from"))
	records := rapid.IntRange(0, 50).Draw(rt, "records")
	size := rapid.SampledFrom([]int{0, 1000, 1 << 30}).Draw(rt, "bytes")
	got, err := sh.Read(context.Background(), from, records, size)
	m.must(rt, err)
	expected := want.read(from, records, size)
	if !sameRecords(got, expected) {
		rt.Fatalf("read %d %d %d: %d records, not %d", from, records, size,
			len(got), len(expected))
	}
}

func sameRecords(a, b []Record) bool {
	return slices.EqualFunc(a, b, func(a, b Record) bool {
		return a.Number == b.Number && a.PartitionKey == b.PartitionKey &&
			bytes.Equal(a.Data, b.Data)
	})
}

func (m *modelShard) read(from uint64, records, bytes int) []Record {
	var got []Record
	for from = max(from, m.oldest); from < m.next() && len(got) < records; from++ {
		r := m.records[from-1]
		bytes -= len(r.PartitionKey) + len(r.Data)
		if bytes < 0 && len(got) > 0 {
			break
		}
		got = append(got, r)
	}
	return got
}

func (m *modelShard) indexAt(ms int64) uint64 {
	n := sort.Search(len(m.records), func(i int) bool { return m.records[i].Arrival >= ms })
	return max(uint64(n)+1, m.oldest)
}

func (m *model) drawTime(rt *rapid.T) int64 {
	return m.clock.ms.Load() + rapid.Int64Range(-300, 50).Draw(rt, "time")
}

func (m *model) find(rt *rapid.T) {
	_, want, sh := m.pick(rt)
	ms := m.drawTime(rt)
	got, err := sh.IndexAt(context.Background(), ms)
	if err != nil || got != want.indexAt(ms) {
		rt.Fatalf("IndexAt %d: %d, not %d: %v", ms, got, want.indexAt(ms), err)
	}
}

func (m *model) seal(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "rarely") > 0 {
		rt.Skip()
	}
	id, want, _ := m.pick(rt)
	m.must(rt, m.engine.do(context.Background(), opSeal, id))
	want.sealed = true
}

func (m *model) delete(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "rarely") > 0 {
		rt.Skip()
	}
	id, _, _ := m.pick(rt)
	m.must(rt, m.engine.do(context.Background(), opDelete, id))
	delete(m.shards, id)
}

func (m *model) trim(rt *rapid.T) {
	id, want, _ := m.pick(rt)
	ms := m.drawTime(rt)
	m.must(rt, m.engine.store.Trim(context.Background(), id, ms))
	want.oldest = want.indexAt(ms)
}

func (m *model) tick(rt *rapid.T) {
	m.clock.ms.Add(rapid.Int64Range(-20, 100).Draw(rt, "tick"))
}

func (m *model) checkpoint(rt *rapid.T) {
	m.must(rt, m.engine.log.Checkpoint(context.Background()))
}

func (m *model) reopen(t *testing.T, rt *rapid.T) {
	m.must(rt, m.engine.close(context.Background()))
	m.engine = m.setup.mustOpen(t)
}

// check makes the cheap comparisons.
func (m *model) check(rt *rapid.T) {
	for id, want := range m.shards {
		sh := m.engine.store.Shard(id)
		if sh == nil {
			rt.Fatalf("shard %d is not there", id)
		}
		oldest, next := sh.Bounds()
		if oldest != want.oldest || next != want.next() || sh.Sealed() != want.sealed {
			rt.Fatalf("shard %d is [%d, %d), sealed: %v, not [%d, %d), %v", id, oldest, next,
				sh.Sealed(), want.oldest, want.next(), want.sealed)
		}
		arrival := int64(0)
		if n := len(want.records); n > 0 {
			arrival = want.records[n-1].Arrival
		}
		if sh.LastArrival() != arrival {
			rt.Fatalf("shard %d: last arrival %d, not %d", id, sh.LastArrival(), arrival)
		}
	}
	if got := len(m.engine.store.all()); got != len(m.shards) {
		rt.Fatalf("%d shards, not %d", got, len(m.shards))
	}
}

func (m *model) checkAll(rt *rapid.T) {
	for id, want := range m.shards {
		got, err := readAll(context.Background(), m.engine.store.Shard(id))
		m.must(rt, err)
		if !sameRecords(got, want.read(1, 1<<30, 1<<60)) {
			rt.Fatalf("shard %d has other records", id)
		}
	}
}
