package compare_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/compare"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// retain changes the retention period.
func (w *world) retain(hours int32, more bool) {
	w.t.Helper()
	name := aws.String(stream)
	var err error
	if more {
		_, err = w.client.IncreaseStreamRetentionPeriod(w.t.Context(),
			&kinesis.IncreaseStreamRetentionPeriodInput{
				StreamName: name, RetentionPeriodHours: &hours,
			})
	} else {
		_, err = w.client.DecreaseStreamRetentionPeriod(w.t.Context(),
			&kinesis.DecreaseStreamRetentionPeriodInput{
				StreamName: name, RetentionPeriodHours: &hours,
			})
	}
	w.must(err)
}

// pass lets hours pass. In each three of them eight records are put and archived.
func (w *world) pass(hours int) {
	w.t.Helper()
	for range hours / 3 {
		w.feed(8)
		w.archive()
		<-time.After(3 * time.Hour)
	}
}

// removed checks that some records were compared, that all others are unchecked, and nothing else.
func (w *world) removed(report *archive.Report, some bool) {
	w.t.Helper()
	got := report.Stream
	if got.Compared+got.Unchecked.Count != int64(w.put) || some != (got.Compared > 0) {
		w.t.Errorf("compared %d, unchecked %d of %d", got.Compared, got.Unchecked.Count, w.put)
	}
	w.want(report, true, archive.StreamReport{Compared: got.Compared, Unchecked: got.Unchecked})
}

// Records that the stream has removed under a shorter retention period are unchecked.
func TestRetentionRaised(t *testing.T) {
	t.Run("of a young stream", func(t *testing.T) {
		inBubble(t, 1, func(w *world) {
			w.pass(48)
			w.retain(168, true)
			w.removed(w.compare(w.dir), true)
		})
	})
	t.Run("with a split", func(t *testing.T) {
		inBubble(t, 1, func(w *world) {
			w.pass(6)
			w.split(0, keyspace.Uniform(2)[1].Start)
			w.pass(39)
			w.retain(168, true)
			w.removed(w.compare(w.dir), true)
		})
	})
	t.Run("of an idle shard", func(t *testing.T) {
		inBubble(t, 1, func(w *world) {
			w.pass(6)
			<-time.After(30 * time.Hour)
			w.retain(168, true)
			w.removed(w.compare(w.dir), false)
		})
	})
	t.Run("after it was lowered", func(t *testing.T) {
		inBubble(t, 1, func(w *world) {
			w.retain(168, true)
			w.pass(60)
			w.retain(24, false)
			w.removed(w.compare(w.dir), true)
			<-time.After(time.Hour)
			w.retain(168, true)
			w.removed(w.compare(w.dir), true)
		})
	})
}

// meanwhile is a client that does something behind its n-th DescribeStreamSummary.
type meanwhile struct {
	*kinesis.Client
	n  int
	do func()
}

func (m *meanwhile) DescribeStreamSummary(
	ctx context.Context, in *kinesis.DescribeStreamSummaryInput, options ...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	out, err := m.Client.DescribeStreamSummary(ctx, in, options...)
	if m.n--; m.n == 0 {
		m.do()
	}
	return out, err
}

// The same, for a period that is shortened at any moment of the comparison.
func TestRetentionLoweredMeanwhile(t *testing.T) {
	for n := 1; n <= 3; n++ {
		inBubble(t, 1, func(w *world) {
			w.retain(168, true)
			w.pass(12)
			w.split(0, keyspace.Uniform(2)[1].Start)
			w.pass(36)
			w.removed(w.compare(w.dir, func(cfg *compare.Config) {
				cfg.Kinesis = &meanwhile{w.client, n, func() {
					w.retain(24, false)
					<-time.After(10 * time.Minute)
				}}
			}), true)
		})
	}
}

// A stream that is deleted and made again during the comparison is not compared.
func TestRecreatedMeanwhile(t *testing.T) {
	for n := 1; n <= 2; n++ {
		inBubble(t, 1, func(w *world) {
			w.feed(8)
			w.archive()
			_, err := w.try(w.dir, func(cfg *compare.Config) {
				cfg.Kinesis = &meanwhile{w.client, n, func() {
					_, err := w.client.DeleteStream(w.t.Context(),
						&kinesis.DeleteStreamInput{StreamName: aws.String(stream)})
					w.must(err)
					<-time.After(time.Minute)
					_, err = w.client.CreateStream(w.t.Context(), &kinesis.CreateStreamInput{
						StreamName: aws.String(stream), ShardCount: aws.Int32(1),
					})
					w.must(err)
					<-time.After(time.Minute)
				}}
			})
			if !errors.Is(err, follow.ErrRecreated) {
				w.t.Errorf("recreated behind call %d: %v", n, err)
			}
		})
	}
}

// Shards whose first commit is not due are behind, as long as no later record of another shard is
// archived.
func TestShardsBehind(t *testing.T) {
	t.Run("a grandchild", func(t *testing.T) {
		inBubble(t, 1, func(w *world) {
			w.feed(50)
			w.archive()
			w.split(0, keyspace.Uniform(2)[1].Start)
			w.feed(50)
			w.split(1, keyspace.Uniform(4)[1].Start)
			w.feed(50)
			w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 50, Behind: n(100)})
		})
	})
	t.Run("a shard that had no record", func(t *testing.T) {
		inBubble(t, 8, func(w *world) {
			w.feed(1)
			w.archive()
			<-time.After(time.Second)
			w.feed(50)
			w.want(w.compare(w.dir), true, archive.StreamReport{Compared: 1, Behind: n(50)})
			w.want(w.compare(w.dir, complete), false,
				archive.StreamReport{Compared: 1, Behind: n(50)})
		})
	})
	t.Run("a fleet at work", func(t *testing.T) {
		for _, late := range []bool{false, true} {
			inBubble(t, 2, func(w *world) {
				w.feed(8)
				if late {
					<-time.After(20 * time.Minute)
				} else {
					<-time.After(time.Minute)
				}
				w.feed(8)
				w.archive()
				w.feed(8)
				shards, err := filepath.Glob(filepath.Join(w.dir, "*", id(0)))
				w.must(err)
				w.must(os.RemoveAll(shards[0]))
				report := w.compare(w.dir)
				if got := report.Stream.Shards.Count == 1; got != late || report.OK() == late {
					w.t.Errorf("late: %v, and the shard is lacking: %v", late, got)
				}
			})
		}
	})
}

// One old arrival time in the archive does not hide the records before it.
func TestOldArrival(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.pass(48)
		count := 0
		dir := w.linksOf(8, func(link []runnel.Record) {
			if count++; count == 16 {
				link[7].ArrivalTime = time.Unix(0, 0)
			}
		})
		w.want(w.compare(dir), false, archive.StreamReport{
			Compared: 7 * 8, Differ: n(1), Unchecked: n(9 * 8),
		})
	})
}

// linksOf writes an archive of the first shard's records, so many a link, as change leaves them.
func (w *world) linksOf(each int, change func([]runnel.Record)) string {
	w.t.Helper()
	ctx, dir := w.t.Context(), w.t.TempDir()
	from, err := archive.Open(w.dir)
	w.must(err)
	streams, err := from.Streams(ctx)
	w.must(err)
	chain := archive.Chain{Stream: streams[0], ShardID: runnel.ShardID(id(0))}
	var all []runnel.Record
	for record, err := range from.Records(ctx, chain) {
		w.must(err)
		all = append(all, record)
	}
	forged, err := archive.New(archive.Config{Dir: dir})
	w.must(err)
	to, err := forged.Open(ctx, sink.Shard{
		Stream: stream, Created: streams[0].Created, ID: chain.ShardID,
	})
	w.must(err)
	for link := range slices.Chunk(all, each) {
		change(link)
		_, err := to.Write(ctx, sink.Batch{Records: link, Through: link[len(link)-1].Position})
		w.must(err)
		_, err = to.Flush(ctx)
		w.must(err)
	}
	w.must(to.Close())
	return dir
}

// A stream that does not answer for long ends the comparison.
func TestGivesUp(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.archive()
		w.must(w.server.SetFaults("seed=1 GetRecords:error-500%100"))
		began := time.Now()
		_, err := w.try(w.dir)
		var answer interface{ HTTPStatusCode() int }
		if !errors.As(err, &answer) || answer.HTTPStatusCode() != http.StatusInternalServerError ||
			time.Since(began) > 5*time.Minute {
			w.t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A time in the future is refused.
func TestSinceInTheFuture(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.archive()
		_, err := w.try(w.dir, func(cfg *compare.Config) { cfg.Since = time.Now().Add(time.Hour) })
		if !errors.Is(err, compare.ErrSince) {
			w.t.Error(err)
		}
	})
}

// Links behind the stream's last record are read to their end, and are foreign.
func TestForeignLinks(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.feed(8)
		w.archive()
		dir := w.linksOf(8, func([]runnel.Record) {})
		reader, err := archive.Open(dir)
		w.must(err)
		streams, err := reader.Streams(w.t.Context())
		w.must(err)
		a, err := archive.New(archive.Config{Dir: dir})
		w.must(err)
		to, err := a.Open(w.t.Context(), sink.Shard{
			Stream: stream, Created: streams[0].Created, ID: runnel.ShardID(id(0)),
		})
		w.must(err)
		at := to.Committed().End
		for range 60 {
			at.Sub++
			_, err := to.Write(w.t.Context(), sink.Batch{Through: at, Records: []runnel.Record{{
				PartitionKey: "k", ShardID: runnel.ShardID(id(0)), Position: at,
				ArrivalTime: time.Now(),
			}}})
			w.must(err)
			_, err = to.Flush(w.t.Context())
			w.must(err)
		}
		w.want(w.compare(dir), false, archive.StreamReport{Compared: 8, Extra: n(60)})
	})
}
