package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

var silent = slog.New(slog.DiscardHandler)

func closeNow(tb testing.TB, p *Producer, ctx context.Context) {
	tb.Helper()
	if err := p.Close(ctx); err != nil {
		tb.Fatal(err)
	}
}

func TestPutAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 20 * time.Millisecond}
		p, ctx := s.open(t, nil)
		began := time.Now()
		future, err := p.Put(ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		result, err := future.Wait(ctx)
		want := Result{
			ShardID: "shardId-000000000000", Position: runnel.Position{Sequence: "1"}, Attempts: 1,
		}
		if err != nil || result != want {
			t.Fatalf("Wait() = %+v, %v", result, err)
		}
		if took := time.Since(began); took != s.latency {
			t.Errorf("it took %v, with a latency of %v", took, s.latency)
		}
		closeNow(t, p, ctx)
		if _, err := p.Put(ctx, runnel.Record{PartitionKey: "a"}); !errors.Is(err, ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		if err := p.Flush(ctx); err != nil {
			t.Errorf("Flush after Close: %v", err)
		}
		closeNow(t, p, ctx)
	})
}

// Put with a context that has ended takes nothing, even if there is room.
func TestPutUnderAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		p, ctx := s.open(t, nil)
		why := errors.New("why")
		ended, cancel := context.WithCancelCause(ctx)
		cancel(why)
		record := runnel.Record{PartitionKey: "a", Data: []byte("1")}
		_, err := p.Put(ended, record)
		if !errors.Is(err, why) {
			t.Errorf("Put: %v, want %v", err, why)
		}
		if err := p.PutMarked(ended, record, 1, nil); !errors.Is(err, why) {
			t.Errorf("PutMarked: %v, want %v", err, why)
		}
		closeNow(t, p, ctx)
		if taken := p.Stats().Taken; taken != 0 {
			t.Errorf("%d records were taken", taken)
		}
	})
}

// A Future can be waited for under several contexts. The end of a context does not affect the
// record.
func TestFutureOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Second}
		p, ctx := s.open(t, nil)
		future, err := p.Put(ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := future.Wait(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Wait under a brief context: %v", err)
		}
		if _, err := future.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		closeNow(t, p, ctx)
	})
}

func TestPutRefusesInvalidRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		p, ctx := s.open(t, func(c *Config) { c.MaxRecordBytes = 10 })
		for _, c := range []struct {
			record runnel.Record
			want   error
			says   string
		}{
			{runnel.Record{}, ErrInvalidPartitionKey, "empty"},
			{runnel.Record{PartitionKey: "a\xff"}, ErrInvalidPartitionKey, "UTF-8"},
			{runnel.Record{PartitionKey: strings.Repeat("ä", 257)}, ErrInvalidPartitionKey, "257 characters"},
			{runnel.Record{PartitionKey: "a", ExplicitHashKey: "01"}, ErrInvalidHashKey, "01"},
			{runnel.Record{PartitionKey: "a", ExplicitHashKey: "x"}, keyspace.ErrKeySyntax, "x"},
			{runnel.Record{PartitionKey: "a", Data: make([]byte, 10)}, ErrTooLarge, "UpdateMaxRecordSize"},
		} {
			err := p.PutFunc(ctx, c.record, func(Result) { t.Error("a refused record has a result") })
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "orders") {
				t.Errorf("Put(%.20q): %v, want %v", c.record.PartitionKey, err, c.want)
			}
		}
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a", Data: make([]byte, 9)}, nil); err != nil {
			t.Error(err)
		}
		closeNow(t, p, ctx)
		if len(s.keys) != 1 || p.Stats().Taken != 1 {
			t.Errorf("%d records are stored, the stats are %+v", len(s.keys), p.Stats())
		}
	})
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, err := New(t.Context(), Config{
		Stream: "no spaces", MaxInFlight: -1, MaxBatchRecords: 501, MaxRecordBytes: 11 << 20,
		Linger: -1, CallTimeout: time.Hour, RetryMin: time.Second, RetryMax: time.Millisecond,
		MaxBufferedBytes: 5, GiveUpAfter: -1,
	})
	for _, field := range []string{
		"Stream", "Kinesis", "MaxInFlight", "MaxBatchRecords", "MaxRecordBytes", "MaxBatchBytes",
		"Linger", "CallTimeout", "RetryMax", "MaxBufferedBytes", "GiveUpAfter",
	} {
		if err == nil || !strings.Contains(err.Error(), "producer: "+field+" is ") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	large := Config{Stream: "s", Kinesis: &stream{}, MaxRecordBytes: 10 << 20}
	if err := large.Validate(); err != nil {
		t.Errorf("the largest records with defaults: %v", err)
	}
}

// A stream's name is sent as StreamName, an ARN as StreamARN, and a record without data as empty
// data.
func TestStreamByNameOrARN(t *testing.T) {
	const arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
	for _, name := range []string{"orders", arn} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{fault: func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
				if (in.StreamARN != nil) != (name == arn) || (in.StreamName != nil) == (name == arn) {
					t.Errorf("%s: name %v, ARN %v", name, in.StreamName, in.StreamARN)
				}
				if in.Records[0].Data == nil {
					t.Error("nil data, which the SDK takes for forgotten")
				}
				return false, nil
			}}
			p, ctx := s.open(t, func(c *Config) { c.Stream = name })
			if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a"}, nil); err != nil {
				t.Fatal(err)
			}
			closeNow(t, p, ctx)
		})
	}
}

// Under all faults at once, records are in order, none is lost, and all duplicates are accounted
// for.
func TestOrderUnderChaos(t *testing.T) {
	for range 5 * soak(t) {
		for _, order := range []Order{OrderKey, OrderPlain} {
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) { chaos(t, order, seed) })
		}
	}
}

func chaos(t *testing.T, order Order, seed uint64) {
	t.Logf("order %v, seed %d", order, seed)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	s := &stream{latency: 5 * time.Millisecond}
	var late sync.WaitGroup
	s.fault = func(ctx context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
		switch draw(12) {
		case 0: // the answer is lost
			return true, errors.New("read: connection reset by peer")
		case 1: // the request is lost
			return false, errors.New("write: broken pipe")
		case 2: // the call hangs until its time-out, and is stored long after
			<-ctx.Done()
			records := slices.Clone(in.Records)
			late.Go(func() {
				time.Sleep(time.Duration(draw(3000)) * time.Millisecond)
				s.store(0, &kinesis.PutRecordsInput{Records: records})
			})
			return false, ctx.Err()
		case 3:
			return false, errRefusedConnection
		}
		time.Sleep(time.Duration(draw(20)) * time.Millisecond)
		return false, nil
	}
	s.refuse = func(n int, _ *types.PutRecordsRequestEntry) string {
		if n == 0 {
			return "" // a late commit
		}
		return []string{"ProvisionedThroughputExceededException", "InternalFailure", "", "", "", "", ""}[draw(7)]
	}
	p, ctx := s.open(t, func(c *Config) {
		c.CallTimeout, c.Order, c.MaxBatchRecords = 200*time.Millisecond, order, 50
	})
	const records = 3000
	results := 0
	load(t, p, ctx, records, 500, func(r Result) {
		if results++; r.Err != nil {
			t.Error(r.Err)
		}
	})
	closeNow(t, p, ctx)
	late.Wait()
	all, stats := s.read(t, false), p.Stats()
	doubles := inOrder(t, all)
	if results != records || len(all)-doubles != records {
		t.Errorf("seed %d: %d results, %d stored and %d of them doubles, of %d", seed, results,
			len(all), doubles, records)
	}
	if order == OrderKey {
		filtered := s.read(t, true)
		if left := inOrder(t, filtered); left != 0 || len(filtered) != records {
			t.Errorf("seed %d: %d pass the filter, %d of them doubles", seed, len(filtered), left)
		}
	}
	if uint64(doubles) > stats.Unknown || doubles == 0 {
		t.Errorf("seed %d: %d doubles, %d attempts without an answer", seed, doubles, stats.Unknown)
	}
	if stats.Delivered != records || stats.Buffered != 0 || stats.BufferedBytes != 0 || stats.OldestAge != 0 {
		t.Errorf("seed %d: %+v", seed, stats)
	}
}

// Without faults there are no unknown attempts and no duplicates. Calls run in parallel up to the
// limit, and are full under load.
func TestCallsAreFullUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 20 * time.Millisecond}
		p, ctx := s.open(t, func(c *Config) { c.MaxInFlight = 3 })
		const records = 20_000
		for i := range records {
			record := runnel.Record{PartitionKey: fmt.Sprint(i), Data: []byte("1")}
			if err := p.PutFunc(ctx, record, nil); err != nil {
				t.Fatal(err)
			}
		}
		closeNow(t, p, ctx)
		if stats := p.Stats(); stats.Unknown != 0 || stats.Retried != 0 || stats.Delivered != records {
			t.Errorf("%+v", stats)
		}
		if s.inOrder(t) != 0 || s.most != 3 {
			t.Errorf("%d calls at a time", s.most)
		}
		if s.calls > records/500+6 {
			t.Errorf("%d calls for %d records", s.calls, records)
		}
	})
}

// The order costs time only for the busiest key. A backlog takes the longer of two times: that of
// full calls, as many in flight as allowed, and a round trip for each record of the busiest key;
// and a few round trips more at the start.
func TestCostOfOrder(t *testing.T) {
	const records, latency = 20_000, 20 * time.Millisecond
	floor := time.Duration(records/500/8) * latency
	for _, every := range []int{0, 5000, 1000, 100, 10} { // one record in `every` has the busy key
		synctest.Test(t, func(t *testing.T) {
			s := &stream{latency: latency}
			p, ctx := s.open(t, nil)
			began, hot := time.Now(), 0
			for i := range records {
				key := fmt.Sprint(i)
				if every > 0 && i%every == 0 {
					key, hot = "hot", hot+1
				}
				if err := p.PutFunc(ctx, runnel.Record{PartitionKey: key}, nil); err != nil {
					t.Fatal(err)
				}
			}
			closeNow(t, p, ctx)
			took, least := time.Since(began), max(floor, time.Duration(hot)*latency)
			t.Logf("%d of the hot key: %.0f records/s, %d calls, %.2f times the floor of no order",
				hot, records/took.Seconds(), s.calls, took.Seconds()/floor.Seconds())
			if took > least+3*latency {
				t.Errorf("%d of the hot key: it took %v, want about %v", hot, took, least)
			}
		})
	}
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		p, ctx := s.open(t, func(c *Config) { c.Linger = 50 * time.Millisecond })
		var futures []*Future
		began := time.Now()
		for _, key := range []string{"a", "b", "c"} {
			f, err := p.Put(ctx, runnel.Record{PartitionKey: key})
			if err != nil {
				t.Fatal(err)
			}
			futures = append(futures, f)
			time.Sleep(10 * time.Millisecond)
		}
		for _, f := range futures {
			if _, err := f.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 50*time.Millisecond || s.calls != 1 {
			t.Errorf("%d calls after %v", s.calls, took)
		}
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "d"}, nil); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if err := p.Flush(ctx); err != nil || time.Since(began) != 0 {
			t.Errorf("Flush took %v: %v", time.Since(began), err)
		}
		closeNow(t, p, ctx)
	})
}

func TestBackPressure(t *testing.T) {
	for name, limit := range map[string]func(*Config){
		"records": func(c *Config) { c.MaxBufferedRecords = 10 },
		"bytes":   func(c *Config) { c.MaxBufferedBytes, c.MaxRecordBytes = 1000, 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stream{latency: time.Second}
				p, ctx := s.open(t, limit)
				record := runnel.Record{PartitionKey: "a", Data: make([]byte, 99)}
				for i := range 10 {
					if err := p.PutFunc(ctx, record, nil); err != nil {
						t.Fatal(i, err)
					}
				}
				began := time.Now()
				brief, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				err := p.PutFunc(brief, record, func(Result) { t.Error("it was not taken") })
				if !errors.Is(err, context.DeadlineExceeded) || p.Stats().Taken != 10 {
					t.Fatalf("Put into a full buffer: %v, %+v", err, p.Stats())
				}
				if err := p.PutFunc(ctx, record, nil); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("there was room after %v", took)
				}
				// Close wakes the blocked Puts, and the records that were taken are delivered.
				began = time.Now()
				woken := make(chan error, 1)
				go func() {
					err := p.PutFunc(ctx, record, nil)
					if took := time.Since(began); took != 0 {
						t.Errorf("Close woke it after %v", took)
					}
					woken <- err
				}()
				synctest.Wait()
				closeNow(t, p, ctx)
				if err := <-woken; !errors.Is(err, ErrClosed) {
					t.Errorf("Put, waiting for room when Close came: %v", err)
				}
				if stats := p.Stats(); stats.Delivered != 11 || stats.Buffered != 0 || stats.BufferedBytes != 0 {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

// A record holds its room during its callback, so with slow callbacks results do not pile up.
func TestSlowCallbacksAreBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		p, ctx := s.open(t, func(c *Config) { c.MaxBufferedRecords = 20 })
		release := make(chan struct{})
		running := atomic.Int32{}
		for range 20 {
			err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a"}, func(Result) {
				if running.Add(1) > 1 {
					t.Error("two callbacks at a time")
				}
				<-release
				running.Add(-1)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		brief, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := p.PutFunc(brief, runnel.Record{PartitionKey: "b"}, nil); err == nil {
			t.Error("there is room, and no callback has ended")
		}
		if err := p.Flush(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush ended before the callbacks: %v", err)
		}
		close(release)
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "b"}, nil); err != nil {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
}

// An outage of an hour costs a record no more than its share of the unknown attempts at the
// beginning. The producer notices the end within about a second.
func TestOutage(t *testing.T) {
	for name, down := range map[string]func(ctx context.Context) error{
		"refused": func(context.Context) error { return errRefusedConnection },
		"hanging": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := &stream{latency: time.Millisecond}
				s.fault = func(ctx context.Context, _ int, _ *kinesis.PutRecordsInput) (bool, error) {
					if up := began.Add(time.Hour); time.Now().Before(up) {
						return false, down(ctx)
					}
					return false, nil
				}
				p, ctx := s.open(t, nil)
				const records = 20_000
				load(t, p, ctx, records, 5000, nil)
				time.Sleep(30 * time.Minute)
				if stats := p.Stats(); !stats.Outage || stats.CallsInFlight > 1 || stats.OldestAge != 30*time.Minute {
					t.Errorf("amid the outage: %+v", stats)
				}
				closeNow(t, p, ctx)
				stats := p.Stats()
				if s.inOrder(t) != 0 || len(s.keys) != records {
					t.Errorf("%d stored of %d", len(s.keys), records)
				}
				// The calls in flight at its beginning, the calls before it was declared, and one
				// record in each probe.
				most := uint64((8+outageAfter-1)*500 + time.Hour/(10*time.Second) + 10)
				if name == "refused" {
					most = 0
				}
				if stats.Unknown > most {
					t.Errorf("%d unknown attempts, want %d at most", stats.Unknown, most)
				}
				// The last probe may hang until its time-out. The busy key needs a round trip
				// for each of its records.
				hot := time.Duration(records/5) * 2 * s.latency
				if late := time.Since(began) - time.Hour; late > 11*time.Second+hot {
					t.Errorf("everything was delivered %v after the end of the outage", late)
				}
			})
		})
	}
}

// Close during an outage, with a deadline, reports every record, and whether it may be in the
// stream.
func TestCloseDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{fault: func(ctx context.Context, n int, _ *kinesis.PutRecordsInput) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}}
		p, ctx := s.open(t, func(c *Config) { c.MaxInFlight, c.MaxBatchRecords = 2, 10 })
		var lost, doubtful, results int
		load(t, p, ctx, 1000, 100, func(r Result) {
			results++
			if errors.Is(r.Err, ErrMaybeStored) {
				doubtful++
			}
			var undelivered *UndeliveredError
			if errors.As(r.Err, &undelivered) && errors.Is(r.Err, ErrClosed) && undelivered.Stream == "orders" {
				lost++
			}
		})
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		began := time.Now()
		err := p.Close(brief)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1000 records") {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		if results != 1000 || lost != 1000 || doubtful != s.sizes[0]+s.sizes[1] || doubtful == 0 {
			t.Errorf("%d results, %d lost, %d of them doubtful", results, lost, doubtful)
		}
		if stats := p.Stats(); stats.Undelivered != 1000 || stats.Buffered != 0 || stats.Unknown != uint64(doubtful) {
			t.Errorf("%+v", stats)
		}
		closeNow(t, p, ctx)
	})
}

// Several goroutines call Close, Flush and Put at once, and all calls return.
func TestConcurrentCloseAndFlush(t *testing.T) {
	for range 20 * soak(t) {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{latency: time.Millisecond}
			p, ctx := s.open(t, func(c *Config) { c.MaxBufferedRecords = 50 })
			var all sync.WaitGroup
			var taken, results atomic.Int64
			for i := range 4 {
				all.Go(func() {
					for {
						err := p.PutFunc(ctx, runnel.Record{PartitionKey: fmt.Sprint(i)}, func(Result) {
							results.Add(1)
						})
						if err != nil {
							if !errors.Is(err, ErrClosed) {
								t.Error(err)
							}
							return
						}
						taken.Add(1)
					}
				})
				all.Go(func() {
					time.Sleep(time.Duration(i) * 5 * time.Millisecond)
					if err := p.Flush(ctx); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					time.Sleep(time.Duration(10+i) * time.Millisecond)
					if err := p.Close(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if taken.Load() != results.Load() || len(s.keys) != int(taken.Load()) {
				t.Errorf("%d taken, %d results, %d stored", taken.Load(), results.Load(), len(s.keys))
			}
		})
	}
}

// The end of the context of New does not stop the delivery.
func TestContextOfNewDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		p, err := New(ctx, Config{Stream: "orders", Kinesis: s, Order: OrderPlain, Logger: silent})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a"}, nil); err != nil {
			t.Fatal(err)
		}
		cancel()
		closeNow(t, p, t.Context())
		if p.Stats().Delivered != 1 {
			t.Errorf("%+v", p.Stats())
		}
	})
}

// Only the throttled lanes wait. The others are not slowed down.
func TestOnlyThrottledLanesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &stream{latency: time.Millisecond}
		s.refuse = func(_ int, r *types.PutRecordsRequestEntry) string {
			if *r.PartitionKey == "slow" && time.Since(began) < 10*time.Second {
				return "ProvisionedThroughputExceededException"
			}
			return ""
		}
		p, ctx := s.open(t, nil)
		var slow, fast time.Duration
		for i := range 100 {
			data := fmt.Append(nil, i+1)
			if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "slow", Data: data},
				func(Result) { slow = time.Since(began) }); err != nil {
				t.Fatal(err)
			}
			if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "fast", Data: data},
				func(Result) { fast = time.Since(began) }); err != nil {
				t.Fatal(err)
			}
		}
		closeNow(t, p, ctx)
		if s.inOrder(t) != 0 || fast != 100*time.Millisecond || slow < 10*time.Second || slow > 16*time.Second {
			t.Errorf("fast after %v, slow after %v", fast, slow)
		}
		stats := p.Stats()
		if stats.Throttled < 5 || stats.Throttled > 20 || stats.Retried != stats.Throttled {
			t.Errorf("%+v", stats)
		}
	})
}

func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &stream{fault: func(context.Context, int, *kinesis.PutRecordsInput) (bool, error) {
			return false, io.ErrUnexpectedEOF
		}}
		p, ctx := s.open(t, func(c *Config) { c.GiveUpAfter = 10 * time.Second })
		var results []Result
		for range 3 {
			if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a"}, func(r Result) {
				results = append(results, r)
			}); err != nil {
				t.Fatal(err)
			}
		}
		closeNow(t, p, ctx)
		if took := time.Since(began); took < 10*time.Second || took > 10*time.Second+time.Second {
			t.Errorf("given up after %v", took)
		}
		for i, r := range results {
			var undelivered *UndeliveredError
			if !errors.As(r.Err, &undelivered) || !errors.Is(r.Err, ErrGivenUp) ||
				errors.Is(r.Err, ErrMaybeStored) != (i == 0) || errors.Is(r.Err, io.ErrUnexpectedEOF) != (i == 0) {
				t.Errorf("record %d: %v", i, r.Err)
			}
		}
		if len(results) != 3 || results[0].Unknown != results[0].Attempts || results[1].Attempts != 0 {
			t.Errorf("%+v", results)
		}
	})
}

// The hooks get every call and every record, and their sums equal the Stats.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Millisecond}
		s.fault = func(_ context.Context, n int, _ *kinesis.PutRecordsInput) (bool, error) {
			switch n % 5 {
			case 1:
				return true, io.ErrUnexpectedEOF
			case 2:
				return false, errRefusedConnection
			default:
				return false, nil
			}
		}
		s.refuse = func(n int, _ *types.PutRecordsRequestEntry) string {
			if n%5 == 3 {
				return "ProvisionedThroughputExceededException"
			}
			return ""
		}
		var mu sync.Mutex
		var sum CallReport
		var calls, results uint64
		p, ctx := s.open(t, func(c *Config) {
			c.MaxBatchRecords = 50
			c.OnCall = func(r CallReport) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				sum.Stored += r.Stored
				sum.Throttled += r.Throttled
				sum.Unknown += r.Unknown
				sum.NotSent += r.NotSent
				if r.Stored+r.Throttled+r.Failed+r.Unknown+r.NotSent+r.Refused != r.Records || r.Took <= 0 || r.Bytes < r.Records {
					t.Errorf("%+v", r)
				}
			}
			c.OnResult = func(record runnel.Record, r Result) {
				results++
				if record.PartitionKey == "" || r.Err != nil {
					t.Errorf("%+v: %+v", record, r)
				}
			}
		})
		load(t, p, ctx, 500, 100, nil)
		closeNow(t, p, ctx)
		synctest.Wait()
		stats := p.Stats()
		if calls != stats.Calls || results != 500 || sum.Stored != 500 || sum.NotSent == 0 ||
			uint64(sum.Throttled) != stats.Throttled || uint64(sum.Unknown) != stats.Unknown {
			t.Errorf("%d calls, %d results, %+v, %+v", calls, results, sum, stats)
		}
	})
}
