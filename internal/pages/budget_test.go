package pages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
)

// shelf is a shard with limits as AWS's: five calls and 2 MiB in any second, counted between two
// delays of the network.
type shelf struct {
	size    int // of a record, in bytes
	left    int // records
	forever bool

	mu      sync.Mutex
	calls   []time.Time
	bytes   []int // of the answers to the calls
	last    int   // the sequence number of the last record
	refused int
}

func (s *shelf) GetShardIterator(
	context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	return &kinesis.GetShardIteratorOutput{ShardIterator: aws.String("x")}, nil
}

func (s *shelf) GetRecords(
	_ context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	var o kinesis.Options
	for _, option := range options {
		option(&o)
	}
	if _, once := o.Retryer.(aws.NopRetryer); !once {
		return nil, errors.New("the SDK's client would make second calls that no budget counts")
	}
	<-time.After(time.Duration(rand.Int64N(int64(40 * time.Millisecond))))
	defer func() { <-time.After(time.Duration(rand.Int64N(int64(40 * time.Millisecond)))) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	now, calls, bytes := time.Now(), 0, 0
	for i, at := range s.calls {
		if now.Sub(at) < time.Second {
			calls, bytes = calls+1, bytes+s.bytes[i]
		}
	}
	if calls >= 5 || bytes >= 2<<20 {
		s.refused++
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	n := min(s.left, int(*in.Limit), (10<<20)/max(1, s.size))
	if s.calls = append(s.calls, now); !s.forever {
		s.left -= n
	}
	s.bytes = append(s.bytes, n*s.size)
	return &kinesis.GetRecordsOutput{
		Records: make([]types.Record, n), NextShardIterator: aws.String("x"),
		MillisBehindLatest: aws.Int64(int64(s.left)),
	}, nil
}

// A cursor over records of any size keeps to AWS's limits without a throttle, and uses most of the
// 2 MiB a second.
func TestCursorKeepsToTheLimits(t *testing.T) {
	for _, size := range []int{100, 1 << 10, 50 << 10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{size: size, left: 1 << 30, forever: true}
				data := make([]byte, size)
				cursor := New(Config{Kinesis: awscbor.New(filled{s, data}), Stream: "s", Shard: "a"})
				began, bytes := time.Now(), 0
				for time.Since(began) < time.Minute {
					page, err := cursor.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					bytes += sizeOf(page.Records)
				}
				rate := float64(bytes) / time.Since(began).Seconds()
				if want := min(0.85*AWS.Bytes, 4.4*10_000*float64(size)); s.refused > 0 ||
					rate < want || rate > AWS.Bytes {
					t.Errorf("%d calls were throttled, %.0f bytes a second", s.refused, rate)
				}
				got := cursor.Stats()
				if got.Calls != uint64(len(s.calls)) || got.Bytes != uint64(bytes) ||
					got.Throttled != 0 {
					t.Errorf("stats %+v for %d calls and %d bytes", got, len(s.calls), bytes)
				}
			})
		})
	}
}

// filled fills a shelf's records with data.
type filled struct {
	*shelf
	data []byte
}

func (f filled) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	out, err := f.shelf.GetRecords(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	for i := range out.Records {
		f.last++
		out.Records[i] = types.Record{
			SequenceNumber: aws.String(strconv.Itoa(f.last)), Data: f.data,
		}
	}
	return out, nil
}

// Two cursors of one budget together keep to the limits. A shard without records costs two calls a
// second with a wait of 500 ms.
func TestCursorsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, budget := &shelf{}, NewBudget(AWS)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		read := func(pace Pace) func() {
			cursor := New(Config{
				Kinesis: awscbor.New(s), Stream: "s", Shard: "a", Budget: budget, Pace: pace,
			})
			return func() {
				for ctx.Err() == nil {
					if _, err := cursor.Next(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			}
		}
		var both sync.WaitGroup
		both.Go(read(Pace{}))
		both.Go(read(Pace{}))
		both.Wait()
		if n := len(s.calls); s.refused > 0 || n < 250 {
			t.Errorf("%d calls, %d were throttled", n, s.refused)
		}
		s.calls = nil
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		read(Pace{Tip: 5 * time.Millisecond, Idle: 500 * time.Millisecond})()
		if n := len(s.calls); n < 110 || n > 122 {
			t.Errorf("%d calls in a minute of an idle shard", n)
		}
	})
}

// In a run of throttles, as after a large answer to another reader, the calls become rare and the
// rate falls once.
func TestBudgetInARunOfThrottles(t *testing.T) {
	b, now, calls := NewBudget(AWS), epoch, 0
	b.random = rand.New(rand.NewPCG(1, 1))
	c, _ := b.take(now)
	b.answer(c, now, 0, 0)
	for end := now.Add(10 * time.Second); now.Before(end); {
		now = now.Add(b.wait(now))
		c, _ := b.take(now)
		b.refuse(c, now)
		calls++
	}
	if calls > 14 {
		t.Errorf("%d calls in ten seconds of throttles", calls)
	}
	now = now.Add(b.wait(now))
	c, _ = b.take(now)
	b.answer(c, now, 0, 0)
	if rate := b.mu.rate.at(now); rate < 2 || rate > 2.6 {
		t.Errorf("%.2f calls a second afterwards", rate)
	}
}

// A low rate is one call in several seconds, and no rate overflows.
func TestBudgetOfAnyRate(t *testing.T) {
	for rate, want := range map[float64]time.Duration{
		0.1: 10 * time.Second, 1e-300: longest, 1e300: 0, 2.5: 400 * time.Millisecond,
	} {
		b := NewBudget(LimitsOf(nil, rate))
		c, wait := b.take(epoch)
		if wait != 0 {
			t.Errorf("%g: the first call waits for %s", rate, wait)
		}
		b.answer(c, epoch, 1, 1)
		if got := b.wait(epoch); got < want || float64(got) > 1.1*float64(want) {
			t.Errorf("%g: the second call waits for %s, want %s", rate, got, want)
		}
	}
}

// Room is asked once for each call, when the call is due, and its number is the call's limit. A
// call without a page gives its room back. Room's error ends the reading.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.put(3)
		held, given := 0, 0
		var fail error
		cursor := f.cursor(runnel.FromOldest(), func(c *Config) {
			c.Limit = 7
			c.Pace = Pace{Least: time.Second}
			c.Room = func(ctx context.Context) (int, error) {
				if held != 0 {
					t.Errorf("%d reservations before another one", held)
				}
				if since := time.Since(f.last); !f.last.IsZero() && since < 50*time.Millisecond {
					t.Errorf("asked %s after the last call", since)
				}
				<-time.After(time.Minute)
				if fail == nil {
					held++
				}
				return 1, fail
			}
			c.Unused = func() { held--; given++ }
		})
		failures := []error{nil, errThrottled, errOutage, errExpired, nil, errThrottled, nil}
		want := 0
		f.fault = func(op string) error {
			if op == "seek" || len(failures) == 0 {
				return nil
			}
			err := failures[0]
			if failures = failures[1:]; err != nil {
				want++
			}
			return err
		}
		for range 3 {
			page, err := cursor.Next(t.Context())
			if err != nil || held != 1 || given != want {
				t.Errorf("%+v, %v: %d held, %d given back of %d", page, err, held, given, want)
			}
			held = 0
		}
		if f.limit != 1 {
			t.Errorf("a call's limit is %d", f.limit)
		}
		fail = errors.New("no room")
		if _, err := cursor.Next(t.Context()); err != fail || held != 0 {
			t.Errorf("%v, %d held", err, held)
		}
	})
}

// An iterator that expired while the process was stopped, while the reader was busy or while it
// waited for room is made again at the record after the last one that was read.
func TestExpiredIterator(t *testing.T) {
	for name, pause := range map[string]time.Duration{"short": time.Minute, "long": time.Hour} {
		for _, inRoom := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{life: 5 * time.Minute}
				f.put(9)
				waits := true
				cursor := f.cursor(runnel.FromOldest(), func(c *Config) {
					c.Room = func(context.Context) (int, error) {
						if waits = !waits; inRoom && waits {
							<-time.After(pause)
						}
						return 10, nil
					}
				})
				got := ""
				for range 5 {
					page, err := cursor.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if got += numbers(page) + " "; !inRoom {
						<-time.After(pause)
					}
				}
				for range 5 {
					page, err := cursor.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					got += numbers(page) + " "
				}
				if got = fmt.Sprint(strings.Fields(got)); got != "[0 1 2 3 4 5 6 7 8]" {
					t.Errorf("%s, in room %v: %s by %q", name, inRoom, got, f.calls)
				}
			})
		}
	}
}
