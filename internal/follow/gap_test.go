package follow_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace"
)

// A follower that is slower than its stream is overtaken by the removal in the end, while its
// iterators are good: each missing record lies in a gap that a notice reports.
func TestGapOfASlowFollower(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 1700 {
				s.put("k", fmt.Sprint(n))
				<-time.After(time.Minute)
			}
		}()
		defer func() { <-done }()
		<-time.After(22 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		last, lost, gaps := -1, 0, 0
		_ = follow.Run(ctx, follow.Config{
			Stream: "s", Kinesis: &limited{s.api, 2},
			OnNotice: func(n follow.Notice) {
				if n.Kind == follow.Gap {
					gaps++
				}
			},
			Handle: func(ctx context.Context, records iter.Seq[*runnel.Record]) error {
				told := gaps
				for record := range records {
					var n int
					_, _ = fmt.Sscan(string(record.Data), &n)
					if missing := n - last - 1; missing > 0 && last >= 0 {
						if told == 0 {
							t.Errorf("%d records before %d are missing without a gap", missing, n)
						}
						lost += missing
					}
					last = n
				}
				gaps = 0
				select {
				case <-ctx.Done():
				case <-time.After(4 * time.Minute):
				}
				return nil
			},
		})
		if lost == 0 {
			t.Error("the follower was not overtaken")
		}
	})
}

// limited reads a few records at a time.
type limited struct {
	*client
	records int32
}

func (l *limited) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	in.Limit = aws.Int32(l.records)
	return l.Client.GetRecords(ctx, in, o...)
}

// A shard without records for longer than the stream keeps them has no gap, whatever happens to
// its iterators.
func TestNoGapOfAnIdleShard(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.put("k", "0")
		stop := errors.New("stop")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 51*time.Hour, stop)
		defer cancel()
		began, lost := time.Now(), false
		s.api.fault = func(op string) error {
			if op == "GetRecords" && !lost && time.Since(began) > 50*time.Hour {
				lost = true
				return errors.New("connection reset")
			}
			return nil
		}
		done := make(chan struct{})
		time.AfterFunc(50*time.Hour+30*time.Minute, func() {
			defer close(done)
			s.put("k", "1")
		})
		defer func() { <-done }()
		gaps, seen := 0, 0
		err := follow.Run(ctx, follow.Config{
			Stream: "s", Kinesis: s.api, IdleInterval: time.Minute,
			OnNotice: func(n follow.Notice) {
				if n.Kind == follow.Gap {
					gaps++
				}
			},
			Handle: func(_ context.Context, records iter.Seq[*runnel.Record]) error {
				for range records {
					seen++
				}
				return nil
			},
		})
		if !errors.Is(err, stop) || gaps != 0 || seen != 2 {
			t.Errorf("%v: %d gaps, %d records", err, gaps, seen)
		}
	})
}

// The children of a split have no gap at their beginnings, in a stream that is too young to have
// removed anything.
func TestNoGapOfChildren(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.put("a", "0")
		s.split(0, keyspace.Uniform(2)[1].Start)
		s.put("a", "1")
		s.put("b", "1")
		if err := s.follow(follow.Config{Once: true}, 0); err != nil {
			t.Error(err)
		}
		if gaps := s.count(follow.Gap); gaps != 0 || len(s.seen) != 3 {
			t.Errorf("%d gaps, %d records; want 0 and 3", gaps, len(s.seen))
		}
	})
}

// A stream that is deleted and made again under its follower ends it, and none of the new stream's
// records is taken for the old one's.
func TestRecreated(t *testing.T) {
	for _, op := range []string{"GetShardIterator", "GetRecords"} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprint(op, nth), func(t *testing.T) {
				inBubble(t, 1, func(t *testing.T, s *stream) { recreated(t, s, op, nth) })
			})
		}
	}
}

func recreated(t *testing.T, s *stream, op string, nth int) {
	calls, lost := 0, 0
	s.api.fault = func(called string) error {
		if called == "GetRecords" && op == "GetShardIterator" {
			if lost++; lost < 3 { // so that there is more than one iterator
				return errors.New("connection reset")
			}
		}
		if called != op {
			return nil
		}
		if calls++; calls != nth {
			return nil
		}
		_, err := s.client.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{
			StreamName: aws.String("s"),
		})
		<-time.After(2 * time.Millisecond)
		if err == nil {
			_, err = s.client.CreateStream(t.Context(), &kinesis.CreateStreamInput{
				StreamName: aws.String("s"), ShardCount: aws.Int32(1),
			})
		}
		if err != nil {
			t.Error(err)
		}
		s.put("k", "new")
		return nil
	}
	if err := s.follow(follow.Config{}, 1); !errors.Is(err, follow.ErrRecreated) {
		t.Errorf("got %v, want ErrRecreated", err)
	}
	if len(s.seen) > 0 {
		t.Errorf("read %q", s.seen)
	}
}

// If the retention period is shortened while a follower is far behind, the stream removes unread
// records, and the follower's iterator stays good: a notice says so.
func TestGapOfAShorterRetention(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		name := aws.String("s")
		if _, err := s.client.IncreaseStreamRetentionPeriod(t.Context(),
			&kinesis.IncreaseStreamRetentionPeriodInput{
				StreamName: name, RetentionPeriodHours: aws.Int32(72),
			}); err != nil {
			t.Fatal(err)
		}
		for n := range 60 {
			s.put("k", fmt.Sprint(n))
			<-time.After(time.Hour)
		}
		reads := 0
		s.api.fault = func(op string) error {
			if op != "GetRecords" {
				return nil
			}
			if reads++; reads != 3 {
				return nil
			}
			_, err := s.client.DecreaseStreamRetentionPeriod(t.Context(),
				&kinesis.DecreaseStreamRetentionPeriodInput{
					StreamName: name, RetentionPeriodHours: aws.Int32(24),
				})
			return err
		}
		if err := s.follow(follow.Config{Once: true}, 0); err != nil {
			t.Fatal(err)
		}
		if s.count(follow.Gap) != 1 || len(s.seen) > 40 {
			t.Errorf("%d gaps, %d records", s.count(follow.Gap), len(s.seen))
		}
	})
}
