package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
)

// retained is a stream of one shard that keeps records for 24 h, in virtual time, and an archive
// or a handler of it.
type retained struct {
	*testing.T
	server *runneltest.Server
	api    consumer.KinesisAPI
	dir    string
	puts   int

	mu      turn
	events  []consumer.Event
	got     []string // a handler's records and "gap"
	refused int      // calls of OnGap
	log     strings.Builder
	kill    func()
}

func onRetained(t *testing.T, test func(*retained)) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStreamDelay(-1),
			runneltest.WithStream("orders", 1))
		test(&retained{
			T: t, server: server, api: server.Kinesis(), mu: make(turn, 1),
			dir: filepath.Join(t.TempDir(), "archive"),
		})
	})
}

// put stores n records, which are numbered, a millisecond apart.
func (r *retained) put(n int) {
	r.Helper()
	for range n {
		if _, err := r.server.Kinesis().PutRecord(r.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("k"),
			Data: fmt.Append(nil, r.puts),
		}); err != nil {
			r.Fatal(err)
		}
		r.puts++
		<-time.After(time.Millisecond)
	}
}

func (r *retained) config(change ...func(*consumer.Config)) consumer.Config {
	cfg := consumer.Config{
		Stream: "orders", App: "app", Kinesis: r.api, DynamoDB: r.server.DynamoDB(),
		PollInterval: 20 * time.Second, Failover: 5 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		OnEvent: func(e consumer.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func (r *retained) archiving(c *consumer.Config) {
	target, err := archive.New(archive.Config{Dir: r.dir})
	if err != nil {
		r.Fatal(err)
	}
	c.Sink = target
}

func (r *retained) handling(c *consumer.Config) {
	c.Handler = func(_ context.Context, b *consumer.Batch) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if b.Gap != nil {
			r.got = append(r.got, "gap")
		}
		for _, record := range b.Records {
			r.got = append(r.got, string(record.Data))
		}
		return nil
	}
}

// run runs a worker for d; 0 means until every record is processed.
func (r *retained) run(d time.Duration, change ...func(*consumer.Config)) error {
	r.Helper()
	w, err := consumer.New(r.config(append(change, func(c *consumer.Config) {
		c.Once = d == 0
	})...))
	if err != nil {
		r.Fatal(err)
	}
	ctx := r.Context()
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	return w.Run(ctx)
}

func (r *retained) mustRun(d time.Duration, change ...func(*consumer.Config)) {
	r.Helper()
	if err := r.run(d, change...); err != nil {
		r.Fatal(err)
	}
}

// seldom makes a long run make few calls.
func seldom(c *consumer.Config) {
	c.PollInterval, c.Failover = 3*time.Minute, 30*time.Minute
	c.AuditInterval = time.Hour
}

// wantGaps verifies the archive: its number of gaps, and of records.
func (r *retained) wantGaps(gaps, records int64) {
	r.Helper()
	report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if report.Gaps.Count != gaps || report.Records != records || report.OK() != (gaps == 0) {
		r.Errorf("%d gaps (%q), %d records, ok: %v; want %d and %d", report.Gaps.Count,
			report.Gaps.Examples, report.Records, report.OK(), gaps, records)
	}
	report, err = archive.Verify(r.Context(), r.dir, archive.VerifyOptions{AllowGaps: true})
	if err != nil || !report.OK() {
		r.Errorf("gaps are allowed: %+v, %v", report, err)
	}
	if trimmed := r.trimmed(); int64(len(trimmed)) != gaps {
		r.Errorf("%d events, want %d: %+v", len(trimmed), gaps, trimmed)
	}
	if logged := strings.Count(r.log.String(), "by its retention period"); int64(logged) != gaps {
		r.Errorf("%d gaps are logged, want %d: %s", logged, gaps, &r.log)
	}
}

func (r *retained) trimmed() (found []consumer.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == consumer.EventTrimmed && e.Gap != nil {
			found = append(found, e)
		}
	}
	return found
}

func (r *retained) gaps() (texts []string) {
	report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return report.Gaps.Examples
}

// An archiver that was away for longer than the retention period reports a gap, in the archive too.
func TestGapAfterAnAbsence(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(10)
		r.mustRun(0, r.archiving)
		r.put(10)
		<-time.After(2 * time.Hour)
		r.put(20)
		<-time.After(23 * time.Hour)
		r.mustRun(0, r.archiving)
		r.wantGaps(1, 30)
	})
}

// The same if no record is left: the gap is committed before any record follows it, once.
func TestGapAtTheTip(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(10)
		r.mustRun(0, r.archiving)
		r.put(10)
		<-time.After(25 * time.Hour)
		r.mustRun(0, r.archiving)
		r.wantGaps(1, 10)
		r.mustRun(0, r.archiving)
		r.put(5)
		r.mustRun(0, r.archiving)
		r.wantGaps(1, 15)
	})
}

// A shard without a read record has a gap at its beginning, and keeps it.
func TestGapAtTheBeginning(t *testing.T) {
	for _, left := range []int{0, 5} {
		onRetained(t, func(r *retained) {
			<-time.After(48 * time.Hour) // so the stream's age is no evidence
			r.mustRun(0, r.archiving)
			r.put(10)
			<-time.After(25 * time.Hour)
			r.put(left)
			r.mustRun(0, r.archiving)
			r.wantGaps(1, int64(left))
			r.put(5)
			r.mustRun(0, r.archiving)
			r.wantGaps(1, int64(left+5))
			if gaps := r.gaps(); !strings.Contains(gaps[0], "nothing between start and") {
				t.Errorf("the gap is %q", gaps)
			}
		})
	}
}

// No record was lost: no gap.
func TestNoGap(t *testing.T) {
	for name, test := range map[string]func(*retained){
		"of a beginning at the oldest record": func(r *retained) {
			r.put(10)
			<-time.After(30 * time.Hour)
			r.put(10)
			r.mustRun(0, r.archiving)
			r.wantGaps(0, 10)
		},
		"of an idle shard that is watched": func(r *retained) {
			r.put(10)
			r.mustRun(40*time.Hour, r.archiving, seldom)
			<-time.After(20 * time.Hour)
			r.mustRun(0, r.archiving)
			<-time.After(20 * time.Hour)
			r.put(10)
			r.mustRun(0, r.archiving)
			r.wantGaps(0, 20)
		},
		"of an empty shard that is watched": func(r *retained) {
			r.mustRun(40*time.Hour, r.archiving, seldom)
			<-time.After(20 * time.Hour)
			r.put(10)
			<-time.After(2 * time.Hour)
			r.mustRun(0, r.archiving)
			r.wantGaps(0, 10)
		},
		"of a short absence": func(r *retained) {
			<-time.After(30 * time.Hour)
			r.put(10)
			r.mustRun(0, r.archiving)
			r.put(10)
			<-time.After(23 * time.Hour)
			r.mustRun(0, r.archiving)
			r.wantGaps(0, 20)
		},
		"of an absence without a removed record": func(r *retained) {
			r.put(10)
			<-time.After(30 * time.Hour)
			r.put(5)
			r.mustRun(0, r.archiving)
			<-time.After(23*time.Hour + 59*time.Minute) // the last record is still there
			r.put(5)
			r.mustRun(0, r.archiving)
			r.wantGaps(0, 10)
		},
		"where a shard's parent is still listed": func(r *retained) {
			r.mustRun(0, r.archiving)
			<-time.After(60 * time.Hour)
			split(r.T, r.server, "shardId-000000000000")
			r.put(10)
			<-time.After(20 * time.Hour)
			r.mustRun(0, r.archiving)
			r.mustRun(0, r.archiving)
			if gaps := r.gaps(); len(gaps) != 1 || !strings.Contains(gaps[0], "shardId-000000000000/") {
				r.Errorf("gaps: %q, want only the parent's, which nobody has seen idle", gaps)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { onRetained(t, test) })
	}
}

// Rows of an older runnel do not have the time up to which their shards are complete. Such a
// shard's beginning is the application's beginning. Behind a record that is gone, a gap cannot be
// excluded.
func TestGapWithRowsOfAnOlderVersion(t *testing.T) {
	for _, before := range []int{0, 10} {
		onRetained(t, func(r *retained) {
			r.put(before)
			r.mustRun(0, r.archiving)
			if _, err := r.server.DynamoDB().UpdateItem(r.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String("app"), Key: map[string]types.AttributeValue{
					"leaseKey": &types.AttributeValueMemberS{Value: "shardId-000000000000"},
				},
				UpdateExpression: aws.String("REMOVE runnelComplete"),
			}); err != nil {
				t.Fatal(err)
			}
			<-time.After(30 * time.Hour)
			r.put(5)
			r.mustRun(0, r.archiving)
			r.wantGaps(int64(before/10), int64(before+5))
		})
	}
}

func split(t *testing.T, server *runneltest.Server, shard string) {
	t.Helper()
	if _, err := server.Kinesis().SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String("orders"), ShardToSplit: aws.String(shard),
		NewStartingHashKey: aws.String("170141183460469231731687303715884105728"),
	}); err != nil {
		t.Fatal(err)
	}
}

// A shard that was removed before its end was read is ended with a gap. Its children begin with a
// gap if their first records have expired as well.
func TestGapOfARemovedParent(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(10)
		r.mustRun(0, r.archiving)
		r.put(10)
		split(r.T, r.server, "shardId-000000000000")
		r.put(10)
		<-time.After(26 * time.Hour)
		r.put(7)
		r.mustRun(0, r.archiving)
		r.mustRun(0, r.archiving)
		gaps := r.gaps()
		if len(gaps) != 3 || !strings.Contains(gaps[0], "and end: the stream removed the shard") {
			t.Errorf("gaps: %q", gaps)
		}
		for _, gap := range gaps[1:] {
			if !strings.Contains(gap, "nothing between start and") {
				t.Errorf("a child's gap: %s", gap)
			}
		}
		report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{AllowGaps: true})
		if err != nil || !report.OK() || report.Records != 17 || report.Ended != 1 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// A parent that another application began in the archive, and that the stream no longer has, does
// not block its children.
func TestGapOfAnotherApplicationsParent(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(10)
		r.mustRun(0, r.archiving)
		split(r.T, r.server, "shardId-000000000000")
		r.put(10)
		<-time.After(26 * time.Hour)
		r.put(7)
		r.mustRun(0, r.archiving, func(c *consumer.Config) { c.App = "another" })
		report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{AllowGaps: true})
		if err != nil || !report.OK() || report.Records != 17 || report.Ended != 1 ||
			report.Gaps.Count != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		for _, e := range r.events {
			if e.Kind == consumer.EventFailed {
				t.Errorf("failed: %v", e.Err)
			}
		}
	})
}

// A child that is read so late after its parent's end that its own beginning has expired has a gap
// there, though a short time has gone by since the parent was read.
func TestGapOfAChildReadLater(t *testing.T) {
	for _, records := range []int{0, 10} { // of the parent
		onRetained(t, func(r *retained) { childReadLater(r, records) })
	}
}

func childReadLater(r *retained, records int) {
	r.put(records)
	r.mustRun(0, r.archiving)
	split(r.T, r.server, "shardId-000000000000")
	r.put(10)
	<-time.After(23 * time.Hour)
	w, err := consumer.New(r.config(r.archiving, func(c *consumer.Config) {
		observe := c.OnEvent
		c.OnEvent = func(e consumer.Event) {
			observe(e)
			if e.Kind == consumer.EventShardEnded {
				r.kill()
			}
		}
	}))
	if err != nil {
		r.Fatal(err)
	}
	ctx, kill := context.WithCancelCause(r.Context())
	r.kill = func() { kill(seam.ErrKilled) }
	if err := w.Run(ctx); !errors.Is(err, seam.ErrKilled) {
		r.Fatal(err)
	}
	<-time.After(2 * time.Hour)
	r.mustRun(0, r.archiving)
	if gaps := r.gaps(); len(gaps) != 2 || strings.Contains(gaps[0], "shardId-000000000000/") {
		r.Errorf("gaps: %q, want those of the children", gaps)
	}
}

// An application begins when its first worker starts, even if that one dies before its first read.
func TestGapBeforeTheFirstRead(t *testing.T) {
	onRetained(t, func(r *retained) {
		<-time.After(48 * time.Hour)
		plain := r.api
		r.api = &hooked{KinesisAPI: plain, op: "GetShardIterator", nth: 1, do: func() { r.kill() }}
		w, err := consumer.New(r.config(r.archiving))
		if err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancelCause(r.Context())
		r.kill = func() { kill(seam.ErrKilled) }
		if err := w.Run(ctx); !errors.Is(err, seam.ErrKilled) {
			t.Fatal(err)
		}
		r.api = plain
		r.put(10)
		<-time.After(25 * time.Hour)
		r.put(5)
		r.mustRun(0, r.archiving)
		r.wantGaps(1, 5)
	})
}

// A handler gets the gap with the records behind it, also if those come later.
func TestGapOfAHandler(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(2)
		r.mustRun(0, r.handling)
		r.put(2)
		<-time.After(25 * time.Hour)
		r.mustRun(0, r.handling) // no record to deliver it with
		r.put(2)
		r.mustRun(0, r.handling)
		r.put(1)
		r.mustRun(0, r.handling)
		if want := []string{"0", "1", "gap", "4", "5", "6"}; !slices.Equal(r.got, want) {
			t.Errorf("the handler was given %q, want %q", r.got, want)
		}
	})
}

// A reader that is slower than its stream is overtaken by the removal in the end: each record is
// delivered, or lies in a gap that was reported, and no gap is reported before.
func TestGapOfASlowReader(t *testing.T) {
	onRetained(t, func(r *retained) {
		const total, each = 1800, time.Minute
		go func() {
			for range total {
				r.put(1)
				<-time.After(each)
			}
		}()
		<-time.After(23 * time.Hour)
		last, gap := -1, false
		var gaps, lost int
		err := r.run(28*time.Hour, func(c *consumer.Config) {
			c.MaxRecords = 2
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				for _, record := range b.Records {
					var n int
					_, _ = fmt.Sscan(string(record.Data), &n)
					gap = gap || b.Gap != nil
					if missing := n - last - 1; missing > 0 && !gap {
						t.Errorf("%d records before %d are missing without a gap", missing, n)
					} else {
						lost += missing
					}
					last, gap = n, false
				}
				if b.Gap != nil {
					gaps++
				}
				select { // its iterators stay good meanwhile
				case <-ctx.Done():
				case <-time.After(4 * time.Minute):
				}
				return nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if gaps == 0 || lost == 0 {
			t.Errorf("%d gaps, %d records lost: the reader was not overtaken", gaps, lost)
		}
		t.Logf("%d gaps, %d records lost, up to record %d", gaps, lost, last)
	})
}
