package archive_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// runs generates the records of many short producers: runs of `put`, one after the other, each with
// a record of every key. Each record is a unit of its own. A run has an id for each group, and the
// group of each record is drawn.
type runs struct {
	runs, keys, groups int
	page               int // records
	n                  int // records so far
	run                int
	ids                []aggregate.ProducerID
	numbers            []uint64
	rng                *rand.Rand
}

// next returns the next page, and whether it is the last one of its run.
func (r *runs) next(k *knower) (b sink.Batch, last bool) {
	if r.n%r.keys == 0 {
		r.ids, r.numbers = make([]aggregate.ProducerID, r.groups), make([]uint64, r.groups)
		for i := range r.ids {
			for j := range r.ids[i] {
				r.ids[i][j] = byte(r.rng.Uint32())
			}
		}
		r.run++
	}
	for range min(r.page, r.keys-r.n%r.keys) {
		key := r.n % r.keys
		at := created.Add(time.Duration(r.run)*2*time.Second + time.Duration(key)*100*time.Microsecond)
		record := runnel.Record{
			PartitionKey: fmt.Sprintf("user-%05d", key), ShardID: parent,
			Data:        fmt.Appendf(nil, `{"id":%d}`, r.n),
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1_000_000 + r.n))},
			ArrivalTime: at,
		}
		group := r.rng.IntN(r.groups)
		r.numbers[group]++
		unit := aggregate.Unit{Producer: r.ids[group], Number: r.numbers[group], Low: 1}
		if k.filter.Admit(unit, aggregate.LaneOf(record.PartitionKey, ""), at) != aggregate.VerdictFresh {
			panic("not fresh")
		}
		b.Records = append(b.Records, record)
		r.n++
	}
	b.Through = b.Records[len(b.Records)-1].Position
	return b, r.n%r.keys == 0
}

func newRuns() *runs {
	return &runs{runs: 51, keys: 5000, groups: 16, page: 500, rng: rand.New(rand.NewPCG(1, 6))}
}

// BenchmarkStory archives 51 runs of 5,000 keys each, with a link after each run, and then a link
// of one record after each. It reports the parts of links that are not records, and the part of a
// page's time that goes to the reader's state: noting the change, the mirror, and the writer.
func BenchmarkStory(b *testing.B) {
	for _, whole := range []int{1, 64} {
		for _, single := range []bool{false, true} {
			b.Run(fmt.Sprintf("whole=%d/single=%v", whole, single), func(b *testing.B) {
				for b.Loop() {
					tellRuns(b, whole, single)
				}
			})
		}
	}
}

// plain returns a writer that keeps no state.
func (k *knower) plain(b *testing.B) sink.Writer {
	a, err := archive.New(archive.Config{Store: archive.NewDirStoreOn(vfs.NewMem(), "to"), Size: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	w, err := a.Open(b.Context(), shardOf(parent))
	if err != nil {
		b.Fatal(err)
	}
	return w
}

func tellRuns(b *testing.B, whole int, single bool) {
	p := &place{T: new(testing.T), store: archive.NewDirStoreOn(vfs.NewMem(), "to")}
	a, err := archive.New(archive.Config{Store: p.store, Whole: whole})
	if err != nil {
		b.Fatal(err)
	}
	w, err := a.Open(b.Context(), shardOf(parent))
	if err != nil {
		b.Fatal(err)
	}
	k := &knower{filter: new(aggregate.Filter), based: true}
	k.filter.Track()
	mirror, plain := new(aggregate.Filter), k.plain(b)
	r := newRuns()
	var pages, commits time.Duration
	var slowest time.Duration
	n := 0
	commit := func() {
		began := time.Now()
		if _, err := w.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		commits += time.Since(began)
		slowest = max(slowest, time.Since(began))
	}
	for r.run < r.runs || r.n%r.keys != 0 {
		batch, last := r.next(k)
		began := time.Now()
		k.finish(&batch)
		delta := new(aggregate.Delta)
		if err := delta.UnmarshalBinary(k.delta); err != nil {
			b.Fatal(err)
		}
		mirror.Apply(delta)
		if _, err := w.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		pages += time.Since(began)
		began = time.Now()
		if _, err := plain.Write(b.Context(), sink.Batch{Records: batch.Records, Through: batch.Through}); err != nil {
			b.Fatal(err)
		}
		pages -= time.Since(began)
		if n++; last {
			commit()
		}
		if last && single {
			one := runnel.Record{
				PartitionKey: "one", ShardID: parent, Data: []byte("{}"), ArrivalTime: batch.Records[0].ArrivalTime,
				Position: runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1_000_000 + r.n - 1)), Sub: 1},
			}
			k.filter.Advance(one.ArrivalTime)
			batch := sink.Batch{Records: []runnel.Record{one}, Through: one.Position}
			k.finish(&batch)
			if _, err := w.Write(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			commit()
		}
	}
	links, size, largest, records := 0, 0, 0, 0
	chain := archive.Chain{Stream: archive.Stream{Name: "orders", Created: created}, ShardID: parent}
	for link, err := range archive.NewReader(p.store).Links(b.Context(), chain) {
		if err != nil {
			b.Fatal(err)
		}
		text, _ := link.MarshalJSON()
		links++
		size += len(text)
		largest = max(largest, len(text))
		records += int(link.Count)
	}
	if records < r.runs*r.keys {
		b.Fatalf("%d records", records)
	}
	b.ReportMetric(float64(size)/float64(links)/1000, "KB/link")
	b.ReportMetric(float64(largest)/1000, "KB-largest")
	b.ReportMetric(pages.Seconds()*1000/float64(n), "ms/page")
	b.ReportMetric(commits.Seconds()*1000/float64(links), "ms/commit")
	began := time.Now()
	if state, _ := mirror.MarshalBinary(); !bytes.Equal(state, k.state()) {
		b.Fatal("the mirror is another")
	}
	b.ReportMetric(time.Since(began).Seconds()*1000/2, "ms/state")
	b.ReportMetric(slowest.Seconds()*1000, "ms-slowest-commit")
	began = time.Now()
	if _, err := a.Open(b.Context(), shardOf(parent)); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds()*1000, "ms/open")
}
