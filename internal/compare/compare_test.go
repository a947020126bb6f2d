package compare_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/compare"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// world is a stream of a server in memory, in virtual time, and its archive.
type world struct {
	t      *testing.T
	server *runneltest.Server
	client *kinesis.Client
	app    string
	dir    string
	put    int // records
	// mapping is archive.Config.Map of the archive, and forging that of its copies.
	mapping, forging func(context.Context, *runnel.Record) (bool, error)
}

const stream = "orders"

func inBubble(t *testing.T, shards int, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(),
			runneltest.WithStream(stream, shards), runneltest.WithStreamDelay(-1))
		test(&world{t: t, server: server, client: server.Kinesis(), app: "archive", dir: t.TempDir()})
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// feed puts n records of eight keys through a producer, as units with identity.
func (w *world) feed(n int) {
	w.t.Helper()
	ctx := w.t.Context()
	p, err := producer.New(ctx, producer.Config{
		Stream: stream, Kinesis: w.client, Reader: w.client,
	})
	w.must(err)
	for range n {
		_, err := p.Put(ctx, runnel.Record{
			PartitionKey: fmt.Sprint("k", w.put%8), Data: fmt.Appendf(nil, `{"n":%d}`, w.put),
		})
		w.must(err)
		w.put++
	}
	w.must(p.Close(ctx))
}

// archive archives the stream up to now, from its oldest record on.
func (w *world) archive() {
	w.t.Helper()
	w.archiveFrom(runnel.FromOldest())
}

func (w *world) archiveFrom(from runnel.From) {
	w.t.Helper()
	a, err := archive.New(archive.Config{Dir: w.dir, Map: w.mapping})
	w.must(err)
	worker, err := consumer.New(consumer.Config{
		Stream: stream, App: w.app, Kinesis: w.client, DynamoDB: w.server.DynamoDB(),
		Sink: a, Once: true, From: from,
	})
	w.must(err)
	w.must(worker.Run(w.t.Context()))
}

func (w *world) split(shard int, at keyspace.Key) {
	w.t.Helper()
	_, err := w.client.SplitShard(w.t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String(stream), ShardToSplit: aws.String(id(shard)),
		NewStartingHashKey: aws.String(at.String()),
	})
	w.must(err)
}

func id(n int) string { return fmt.Sprintf("shardId-%012d", n) }

// compare returns the report of a comparison with an archive in a folder.
func (w *world) compare(dir string, set ...func(*compare.Config)) *archive.Report {
	w.t.Helper()
	report, err := w.try(dir, set...)
	w.must(err)
	return report
}

func (w *world) try(dir string, set ...func(*compare.Config)) (*archive.Report, error) {
	w.t.Helper()
	reader, err := archive.Open(dir)
	w.must(err)
	cfg := compare.Config{Stream: stream, Kinesis: w.client, Archive: reader}
	for _, f := range set {
		f(&cfg)
	}
	return compare.Run(w.t.Context(), cfg)
}

// want checks the counts of a report.
func (w *world) want(report *archive.Report, ok bool, want archive.StreamReport) {
	w.t.Helper()
	got := report.Stream
	for _, n := range []struct {
		name      string
		got, want int64
	}{
		{"compared", got.Compared, want.Compared},
		{"missing", got.Missing.Count, want.Missing.Count},
		{"extra", got.Extra.Count, want.Extra.Count},
		{"differ", got.Differ.Count, want.Differ.Count},
		{"shards", got.Shards.Count, want.Shards.Count},
		{"behind", got.Behind.Count, want.Behind.Count},
		{"unchecked", got.Unchecked.Count, want.Unchecked.Count},
	} {
		if n.got != n.want {
			w.t.Errorf("%s: %d, want %d", n.name, n.got, n.want)
		}
	}
	if report.OK() != ok {
		w.t.Errorf("ok is %v, want %v", report.OK(), ok)
	}
	if w.t.Failed() {
		var text strings.Builder
		_ = report.WriteText(&text)
		w.t.Fatal(text.String())
	}
}

func n(count int) archive.Finding { return archive.Finding{Count: int64(count)} }

func complete(cfg *compare.Config) { cfg.Complete = true }

// An archive over a split and a merge, of a stream that has doubles of units, is as the stream.
// Later records are behind.
func TestAsTheStream(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.must(w.server.SetFaults("seed=1 PutRecords:lose-answer%30"))
		w.feed(100)
		w.split(0, keyspace.Uniform(4)[1].Start)
		w.feed(100)
		w.archive()
		_, err := w.client.MergeShards(w.t.Context(), &kinesis.MergeShardsInput{
			StreamName: aws.String(stream), ShardToMerge: aws.String(id(3)),
			AdjacentShardToMerge: aws.String(id(1)),
		})
		w.must(err)
		w.feed(100) // its parents are not archived to their ends, so the child is behind as well
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 200, Behind: n(100)})
		w.archive()
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 300})
		w.feed(8)
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 300, Behind: n(8)})
		w.want(w.compare(w.dir, complete), false, archive.StreamReport{Compared: 300, Behind: n(8)})
		w.archive()
		w.want(w.compare(w.dir, complete), true, archive.StreamReport{Compared: 308})
	})
}

// copyOf writes an archive of this one's records as change leaves them, with headers that agree.
func (w *world) copyOf(change func(runnel.ShardID, []runnel.Record) []runnel.Record) string {
	w.t.Helper()
	ctx, dir := w.t.Context(), w.t.TempDir()
	from, err := archive.Open(w.dir)
	w.must(err)
	streams, err := from.Streams(ctx)
	w.must(err)
	shards, err := from.Shards(ctx, streams[0])
	w.must(err)
	old, err := archive.New(archive.Config{Dir: w.dir})
	w.must(err)
	forged, err := archive.New(archive.Config{Dir: dir, Map: w.forging})
	w.must(err)
	for _, s := range shards {
		shard := sink.Shard{Stream: stream, Created: streams[0].Created, ID: s.ShardID}
		for _, parent := range s.Parents {
			shard.Parents = append(shard.Parents, parent.ShardID)
		}
		tip, err := old.Open(ctx, shard)
		w.must(err)
		at := tip.Committed()
		w.must(tip.Close())
		var records []runnel.Record
		for record, err := range from.Records(ctx, s) {
			w.must(err)
			records = append(records, record)
		}
		if records = change(s.ShardID, records); records == nil {
			continue
		}
		batch := sink.Batch{
			Records: records, Through: at.End, State: func() []byte { return at.State },
		}
		if at.End == runnel.End() {
			batch.Through = records[len(records)-1].Position
		}
		to, err := forged.Open(ctx, shard)
		w.must(err)
		_, err = to.Write(ctx, batch)
		w.must(err)
		if at.End == runnel.End() {
			_, err = to.End(ctx)
		} else {
			_, err = to.Flush(ctx)
		}
		w.must(err)
		w.must(to.Close())
	}
	return dir
}

// Each of these archives is whole by itself, and the comparison names the change.
func TestForged(t *testing.T) {
	const first = runnel.ShardID("shardId-000000000000")
	type records = []runnel.Record
	for _, c := range []struct {
		name    string
		change  func(runnel.ShardID, records) records
		want    archive.StreamReport
		example string
	}{
		{
			"nothing", func(_ runnel.ShardID, all records) records { return all },
			archive.StreamReport{Compared: 200},
			"",
		},
		{
			"a record is taken out", func(id runnel.ShardID, all records) records {
				if id == first {
					return slices.Delete(all, 20, 21)
				}
				return all
			},
			archive.StreamReport{Compared: 199, Missing: n(1)},
			"shardId-000000000000: the record at ",
		},
		{
			"a record is added", func(id runnel.ShardID, all records) records {
				if id == first {
					at := 20 // the last one of its aggregate
					for all[at+1].Position.Sequence == all[at].Position.Sequence {
						at++
					}
					more := all[at]
					more.Position.Sub += 500
					return slices.Insert(all, at+1, more)
				}
				return all
			},
			archive.StreamReport{Compared: 200, Extra: n(1)},
			"not in the stream",
		},
		{
			"a record has other data", func(id runnel.ShardID, all records) records {
				if id == first {
					all[20].Data = []byte(`{"n":1234567}`)
				}
				return all
			},
			archive.StreamReport{Compared: 200, Differ: n(1)},
			"has another data",
		},
		{
			"a record has another key", func(id runnel.ShardID, all records) records {
				if id == first {
					all[20].PartitionKey = "k9"
				}
				return all
			},
			archive.StreamReport{Compared: 200, Differ: n(1)},
			"has another partition key",
		},
		{
			"a shard is removed", func(id runnel.ShardID, all records) records {
				if id == first {
					return nil
				}
				return all
			},
			archive.StreamReport{Shards: n(1)},
			"shardId-000000000000: ",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 2, func(w *world) {
				w.must(w.server.SetFaults("seed=1 PutRecords:lose-answer%30"))
				w.feed(200)
				w.archive()
				taken := 0
				dir := w.copyOf(func(id runnel.ShardID, all records) records {
					changed := c.change(id, slices.Clone(all))
					if changed == nil {
						taken = len(all)
					}
					return changed
				})
				if c.want.Compared == 0 {
					c.want.Compared = int64(200 - taken)
				}
				report := w.compare(dir)
				w.want(report, c.example == "", c.want)
				var text strings.Builder
				w.must(report.WriteText(&text))
				if !strings.Contains(text.String(), c.example) {
					t.Errorf("%q is not in:\n%s", c.example, &text)
				}
			})
		})
	}
}

// An archive that was written with Map is compared by positions, and its dropped records by number.
func TestMapped(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.mapping = func(_ context.Context, record *runnel.Record) (bool, error) {
			dropped := strings.HasSuffix(string(record.Data), "3}")
			record.Data = []byte("other")
			return !dropped, nil
		}
		w.feed(100)
		w.archive()
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 90})
		type records = []runnel.Record
		w.forging = func(_ context.Context, record *runnel.Record) (bool, error) {
			return string(record.Data) != "none of the stream", nil
		}
		all := w.copyOf(func(_ runnel.ShardID, all records) records { return all })
		w.want(w.compare(all), false, archive.StreamReport{Compared: 90, Missing: n(10)})
		w.mapping, w.app, w.dir = nil, "second", t.TempDir()
		w.archive()
		more := w.copyOf(func(_ runnel.ShardID, all records) records {
			foreign := all[20]
			foreign.Position.Sub += 500
			foreign.Data = []byte("none of the stream")
			at := 20
			for all[at+1].Position.Sequence == all[at].Position.Sequence {
				at++
			}
			return slices.Insert(all, at+1, foreign)
		})
		w.want(w.compare(more), false, archive.StreamReport{Compared: 100, Differ: n(1)})
	})
}

// A chain that loses its last link is behind; the records of a damaged link, or of one that is
// missing, are missing.
func TestDamaged(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for range 3 {
			w.feed(10)
			w.archive()
		}
		links, err := filepath.Glob(filepath.Join(w.dir, "*", "*", "*.gz"))
		w.must(err)
		if len(links) != 3 {
			t.Fatalf("%d links", len(links))
		}
		w.must(os.Rename(links[2], links[2]+".away"))
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 20, Behind: n(10)})
		w.must(os.Rename(links[2]+".away", links[2]))
		whole, err := os.ReadFile(links[1])
		w.must(err)
		w.must(os.WriteFile(links[1], whole[:len(whole)-20], 0o600))
		if got := w.compare(w.dir); got.OK() || got.Stream.Missing.Count == 0 {
			t.Errorf("of a link that is cut off: %+v", got.Stream)
		}
		w.must(os.WriteFile(links[1], []byte("?"), 0o600))
		w.want(w.compare(w.dir), false, archive.StreamReport{Compared: 20, Missing: n(10)})
		w.must(os.Remove(links[1]))
		w.want(w.compare(w.dir), false,
			archive.StreamReport{Compared: 20, Missing: n(10)})
	})
}

// An archive that begins at a time lacks the records before it, unless the comparison begins there.
func TestSince(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		<-time.After(time.Minute)
		since := time.Now()
		w.feed(8)
		w.archiveFrom(runnel.FromTime(since))
		w.want(w.compare(w.dir), false, archive.StreamReport{Compared: 8, Missing: n(8)})
		w.want(w.compare(w.dir, func(cfg *compare.Config) { cfg.Since = since }), true,
			archive.StreamReport{Compared: 8})
	})
}

// A chain of a shard that a young stream does not list is none of its own.
func TestForeignShard(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.feed(16)
		w.archive()
		forged := w.copyOf(func(id runnel.ShardID, all []runnel.Record) []runnel.Record {
			return all
		})
		streams, err := os.ReadDir(forged)
		w.must(err)
		a, err := archive.New(archive.Config{Dir: forged})
		w.must(err)
		_, created, _ := strings.Cut(streams[0].Name(), "@")
		ms, err := strconv.ParseInt(created, 10, 64)
		w.must(err)
		foreign := sink.Shard{
			Stream: stream, Created: time.UnixMilli(ms), ID: "shardId-000000000077",
		}
		to, err := a.Open(w.t.Context(), foreign)
		w.must(err)
		at := runnel.Position{Sequence: "4711"}
		_, err = to.Write(w.t.Context(), sink.Batch{Through: at, Records: []runnel.Record{{
			PartitionKey: "k", ShardID: foreign.ID, Position: at, ArrivalTime: time.Now(),
		}}})
		w.must(err)
		_, err = to.Flush(w.t.Context())
		w.must(err)
		w.want(w.compare(forged), false, archive.StreamReport{Compared: 16, Extra: n(1)})
	})
}

// A stream that is older than its retention period is compared from the first link on that has no
// older record, with the state there: the double of a unit before it is none of the archive.
func TestRetention(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for range 48 {
			w.feed(8)
			w.archive()
			<-time.After(time.Hour)
		}
		all := w.copyOf(func(_ runnel.ShardID, all []runnel.Record) []runnel.Record { return all })
		w.want(w.compare(w.dir, complete), true,
			archive.StreamReport{Compared: 22 * 8, Unchecked: n(26 * 8)})
		// One link has everything, and so begins too early.
		w.want(w.compare(all), true, archive.StreamReport{Unchecked: n(48 * 8)})
		since := func(cfg *compare.Config) {
			cfg.Since = time.Now().Add(-2*time.Hour - time.Minute)
		}
		w.want(w.compare(w.dir, since), true,
			archive.StreamReport{Compared: 16, Unchecked: n(46 * 8)})
	})
}

// again puts the last Kinesis record of a shard once more, as a producer that had no answer.
func (w *world) again() {
	w.t.Helper()
	ctx := w.t.Context()
	at, err := w.client.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName: aws.String(stream), ShardId: aws.String(id(0)),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	w.must(err)
	out, err := w.client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: at.ShardIterator})
	w.must(err)
	last := out.Records[len(out.Records)-1]
	_, err = w.client.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: aws.String(stream), PartitionKey: last.PartitionKey, Data: last.Data,
	})
	w.must(err)
}

// The double of a unit that lies before the comparison's beginning is known by the archive's state.
func TestDoubleAcrossTheBeginning(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.archive()
		<-time.After(30 * time.Second)
		middle := time.Now()
		w.again()
		w.feed(8)
		w.archive()
		w.want(w.compare(w.dir, func(cfg *compare.Config) { cfg.Since = middle }), true,
			archive.StreamReport{Compared: 8, Unchecked: n(8)})
		w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 16})
	})
}

// slow is a client. Its first GetRecords takes longer than the reserve of the comparison.
type slow struct {
	*kinesis.Client
	pause time.Duration
	slept atomic.Bool
}

func (s *slow) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	if s.slept.CompareAndSwap(false, true) {
		<-time.After(s.pause)
	}
	return s.Client.GetRecords(ctx, in, options...)
}

// Records that the stream removes during the comparison are unchecked, and not foreign.
func TestTrimmedMeanwhile(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for range 48 {
			w.feed(8)
			w.archive()
			<-time.After(time.Hour)
		}
		report := w.compare(w.dir, func(cfg *compare.Config) {
			cfg.Kinesis = &slow{Client: w.client, pause: 5*time.Hour + time.Minute}
		})
		if w.removed(report, true); report.Stream.Compared == 22*8 {
			t.Error("nothing was removed")
		}
	})
}

// The same holds for a child whose first records came long after its parent's end: the parent is
// not read.
func TestChildTrimmedMeanwhile(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.split(0, keyspace.Uniform(2)[1].Start)
		w.archive()
		<-time.After(20 * time.Hour)
		for range 10 {
			w.feed(8)
			w.archive()
			<-time.After(time.Hour)
		}
		report := w.compare(w.dir, func(cfg *compare.Config) {
			cfg.Kinesis = &slow{Client: w.client, pause: 18 * time.Hour}
		})
		if w.removed(report, true); report.Stream.Compared == 80 {
			t.Error("nothing was removed")
		}
	})
}

// A parent that the archive lacks is read for its units: their doubles may be in its children.
func TestParentBeforeTheArchive(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.split(0, keyspace.Uniform(2)[1].Start)
		<-time.After(time.Second)
		since := time.Now()
		w.archiveFrom(runnel.FromLatest())
		w.again()
		w.feed(8)
		w.archive()
		w.want(w.compare(w.dir, func(cfg *compare.Config) { cfg.Since = since }), true,
			archive.StreamReport{Compared: 8})
		w.want(w.compare(w.dir), false, archive.StreamReport{Compared: 8, Shards: n(1)})
	})
}

// An archive of an earlier stream of that name is no archive of this one.
func TestOtherStream(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.archive()
		_, err := w.client.DeleteStream(w.t.Context(),
			&kinesis.DeleteStreamInput{StreamName: aws.String(stream)})
		w.must(err)
		<-time.After(time.Minute)
		if _, err := w.try(w.dir); err == nil {
			t.Error("a stream that is not there was compared")
		}
		_, err = w.client.CreateStream(w.t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String(stream), ShardCount: aws.Int32(1),
		})
		w.must(err)
		<-time.After(time.Minute)
		if _, err := w.try(w.dir); err == nil || !strings.Contains(err.Error(), "another stream") {
			t.Errorf("another stream of the name: %v", err)
		}
	})
}

var _ follow.KinesisAPI = (*slow)(nil)
