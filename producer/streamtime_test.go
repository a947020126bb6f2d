package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// shiftedStream is a stream with a clock that differs from its clients' by a fixed time: its Dates,
// its arrival times, and the times in its requests are shifted.
type shiftedStream struct {
	*kinesis.Client
	by time.Duration

	asked     atomic.Int32              // calls of ListShards
	from      []types.ShardIteratorType // the types of the iterators
	unready   func() bool               // while true, the last record of a shard cannot be read
	neverZero bool                      // MillisBehindLatest is never 0
	foreign   bool                      // it does not know the sequence numbers
}

func newShiftedStream(server *runneltest.Server, by time.Duration) *shiftedStream {
	options := server.Kinesis().Options()
	options.HTTPClient = shiftedDates{options.HTTPClient, by}
	return &shiftedStream{Client: kinesis.New(options), by: by}
}

// shiftedDates is an HTTP client that shifts the Dates of the answers.
type shiftedDates struct {
	kinesis.HTTPClient
	by time.Duration
}

func (d shiftedDates) Do(request *http.Request) (*http.Response, error) {
	response, err := d.HTTPClient.Do(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		response.Header.Set("Date", date.Add(d.by).UTC().Format(http.TimeFormat))
	}
	return response, nil
}

func (e *shiftedStream) ListShards(
	ctx context.Context, input *kinesis.ListShardsInput, options ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	e.asked.Add(1)
	return e.Client.ListShards(ctx, input, options...)
}

func (e *shiftedStream) GetShardIterator(
	ctx context.Context, input *kinesis.GetShardIteratorInput, options ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	e.from = append(e.from, input.ShardIteratorType)
	if input.StartingSequenceNumber != nil && e.foreign {
		return nil, &types.InvalidArgumentException{Message: aws.String("not of this stream")}
	}
	if input.Timestamp != nil {
		here := *input
		here.Timestamp = aws.Time(input.Timestamp.Add(-e.by))
		input = &here
	}
	return e.Client.GetShardIterator(ctx, input, options...)
}

func (e *shiftedStream) GetRecords(
	ctx context.Context, input *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	if e.unready != nil && e.unready() {
		return &kinesis.GetRecordsOutput{
			NextShardIterator: input.ShardIterator, MillisBehindLatest: aws.Int64(1),
		}, nil
	}
	output, err := e.Client.GetRecords(ctx, input, options...)
	if err != nil {
		return nil, err
	}
	for i := range output.Records {
		arrival := &output.Records[i].ApproximateArrivalTimestamp
		*arrival = aws.Time((*arrival).Add(e.by))
	}
	if e.neverZero {
		output.MillisBehindLatest = aws.Int64(1)
	}
	return output, nil
}

// lostAnswer puts records 1, 2 and 3 of some keys. For longer than H it loses the answers of all
// calls with a record 2 or, if cold is set, with a record 1. It returns the records in the stream.
func lostAnswer(
	t *testing.T, by time.Duration, cold bool, change func(*shiftedStream, *producer.Config),
) (producer.Stats, []stored) {
	ctx := t.Context()
	seam.SetH(t, 2*time.Second)
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
		runneltest.WithStream("orders", 2))
	stream := newShiftedStream(server, by)
	cfg := producer.Config{
		Stream: "orders", Kinesis: stream, Reader: stream,
		CallTimeout: 500 * time.Millisecond, Logger: quiet,
		OnResult: func(_ runnel.Record, r producer.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		},
	}
	if change != nil {
		change(stream, &cfg)
	}
	p, err := producer.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	put := func(data string) {
		for key := range 5 {
			record := runnel.Record{PartitionKey: fmt.Sprint("key-", key), Data: []byte(data)}
			if err := p.PutFunc(ctx, record, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	faults := func(spec string) {
		if err := server.SetFaults(spec); err != nil {
			t.Fatal(err)
		}
	}
	if !cold {
		put("1")
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Millisecond)
	faults("PutRecords:lose-answer")
	if cold {
		put("1")
	}
	put("2")
	time.Sleep(3 * time.Second)
	faults("")
	put("3")
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return p.Stats(), readAll(t, server.Kinesis())
}

func onceAndInOrder(t *testing.T, all []stored) {
	t.Helper()
	last := map[string]int{}
	for key := range 5 {
		last[fmt.Sprint("key-", key)] = 3
	}
	if doubles := checkStream(t, passed(all), map[string]int{}, last); doubles != 0 {
		t.Errorf("%d doubles pass the filter", doubles)
	}
}

// foundAll fails unless all units that were looked up were found. One unit at least was: that of
// the first call. After three calls without an answer there is an outage, and the units that were
// not sent before may be sent so late that they need no look-up.
func foundAll(t *testing.T, stats producer.Stats) {
	t.Helper()
	if stats.Found == 0 || stats.Renewed != 0 || stats.Undelivered != 0 {
		t.Errorf("%+v", stats)
	}
}

// A look-up finds its units although the stream's clock is an hour ahead of the producer's, or
// behind. It begins behind an acknowledged record, or otherwise at the stream's time.
func TestLookUpByTheStreamsClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -20 * time.Minute, 0, 20 * time.Minute, time.Hour} {
		for cold, want := range map[bool]types.ShardIteratorType{
			false: types.ShardIteratorTypeAtSequenceNumber,
			true:  types.ShardIteratorTypeAtTimestamp,
		} {
			t.Run(fmt.Sprint(by, want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var stream *shiftedStream
					stats, all := lostAnswer(t, by, cold, func(e *shiftedStream, _ *producer.Config) {
						stream = e
					})
					onceAndInOrder(t, all)
					foundAll(t, stats)
					if stream.from[0] != want {
						t.Errorf("looked up from %v, want %v", stream.from[0], want)
					}
				})
			})
		}
	}
}

// A look-up waits for records that cannot be read yet, for example because a disk hangs, and logs
// that once.
func TestLookUpWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var log bytes.Buffer
		stats, all := lostAnswer(t, 0, true, func(e *shiftedStream, cfg *producer.Config) {
			e.unready = func() bool { return time.Since(began) < time.Minute }
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		onceAndInOrder(t, all)
		foundAll(t, stats)
		if took := time.Since(began); took < time.Minute {
			t.Errorf("looked up after %v", took)
		}
		if n := strings.Count(log.String(), "cannot be read so far"); n != 1 {
			t.Errorf("said %d times:\n%s", n, log.String())
		}
	})
}

// If the stream does not know a sequence number, because it was deleted and created again, the
// look-up begins at the time instead.
func TestLookUpInAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stream *shiftedStream
		stats, all := lostAnswer(t, 0, false, func(e *shiftedStream, _ *producer.Config) {
			e.foreign, stream = true, e
		})
		onceAndInOrder(t, all)
		foundAll(t, stats)
		if stream.from[0] != types.ShardIteratorTypeAtSequenceNumber {
			t.Errorf("looked up from %v", stream.from[0])
		}
	})
}

// A unit that may have been trimmed does not count as absent. Its age is by the stream's time, not
// by the producer's clock.
func TestTrimmedByTheStreamsClock(t *testing.T) {
	for age, unresolved := range map[time.Duration]bool{time.Hour: false, 30 * time.Hour: true} {
		for _, by := range []time.Duration{-40 * time.Hour, 0, 40 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
					runneltest.WithStream("orders", 1))
				stream := newShiftedStream(server, by)
				unit := frozenUnit(t)
				unit.FrozenAt, unit.ServerTime = time.Now(), time.Now().Add(by-age)
				var results []producer.Result
				p, err := producer.New(ctx, producer.Config{
					Stream: "orders", Kinesis: stream, Reader: stream, Journal: &openUnits{},
					Resume: []producer.FrozenUnit{unit}, Logger: quiet,
					OnResult: func(_ runnel.Record, r producer.Result) { results = append(results, r) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Close(ctx); err != nil && !unresolved {
					t.Fatal(err)
				}
				if len(results) != 1 || errors.Is(results[0].Err, producer.ErrUnresolved) != unresolved {
					t.Errorf("%v ago, a clock that is off by %v: %+v", age, by, results)
				}
			})
		}
	}
}

// In a shard that never reports that it was read to the end, a look-up ends at a record that
// arrived after it began.
func TestLookUpInABusyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, stop := context.WithCancel(t.Context())
		defer stop()
		var others sync.WaitGroup
		began := time.Now()
		stats, all := lostAnswer(t, time.Hour, true, func(e *shiftedStream, _ *producer.Config) {
			e.neverZero = true
			others.Go(func() {
				for busy.Err() == nil {
					for _, hash := range []string{"0", "340282366920938463463374607431768211455"} {
						_, err := e.PutRecord(busy, &kinesis.PutRecordInput{
							StreamName: aws.String("orders"), PartitionKey: aws.String("other"),
							ExplicitHashKey: &hash, Data: []byte("1"),
						})
						if err != nil && busy.Err() == nil {
							t.Error(err)
						}
					}
					time.Sleep(300 * time.Millisecond)
				}
			})
		})
		stop()
		others.Wait()
		var ours []stored
		for _, r := range all {
			if r.key != "other" {
				ours = append(ours, r)
			}
		}
		onceAndInOrder(t, ours)
		foundAll(t, stats)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("after %v: %+v", took, stats)
		}
	})
}

// Before the first unit of a run the stream is asked for its time, once. If it does not answer,
// that is an outage.
func TestFirstSendAsksForTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
			runneltest.WithStream("orders", 2), runneltest.WithFaults("ListShards:lose-request"))
		stream := newShiftedStream(server, 0)
		p, err := producer.New(ctx, producer.Config{
			Stream: "orders", Kinesis: stream, Reader: stream, Logger: quiet,
			CallTimeout: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			record := runnel.Record{PartitionKey: fmt.Sprint("key-", i), Data: []byte("1")}
			if err := p.PutFunc(ctx, record, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if stats := p.Stats(); stats.Calls != 0 || !stats.Outage || stats.Buffered != 100 {
			t.Errorf("%+v", stats)
		}
		if err := server.SetFaults(""); err != nil {
			t.Fatal(err)
		}
		before := stream.asked.Load()
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}
		asked := stream.asked.Load() - before
		if stats := p.Stats(); stats.Delivered != 100 || stats.Unknown > 0 || asked != 1 {
			t.Errorf("asked %d times, %+v", asked, stats)
		}
	})
}

// A unit from before the machine's last boot is sent again if the stream's clock has advanced by at
// most H since its first attempt, and looked up otherwise.
func TestResumedInAnotherBoot(t *testing.T) {
	for _, c := range []struct {
		after    time.Duration
		boot     string // the boot id of the unit; "": the real one
		old      bool   // the journal has only FrozenAt
		lookedUp uint64
	}{
		{after: 8 * time.Second, boot: "another", lookedUp: 0},
		{after: 11 * time.Second, boot: "another", lookedUp: 1},
		{after: 9500 * time.Millisecond, lookedUp: 0},
		{after: 10500 * time.Millisecond, lookedUp: 1},
		{after: time.Second, old: true, lookedUp: 1},
	} {
		t.Run(fmt.Sprintf("%v boot=%s old=%v", c.after, c.boot, c.old), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seam.SetH(t, 10*time.Second)
				ctx := t.Context()
				server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
					runneltest.WithStream("orders", 1), runneltest.WithFaults("PutRecords:lose-answer"))
				open := &openUnits{}
				stream := newShiftedStream(server, -time.Hour)
				cfg := producer.Config{
					Stream: "orders", Kinesis: stream, Reader: stream, Journal: open, Logger: quiet,
					CallTimeout: time.Second,
				}
				p, err := producer.New(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				record := runnel.Record{PartitionKey: "a", Data: []byte("1")}
				if err := p.PutMarked(ctx, record, 1, nil); err != nil {
					t.Fatal(err)
				}
				brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				if err := p.Close(brief); err == nil {
					t.Fatal("everything was answered")
				}
				if err := server.SetFaults(""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after - 100*time.Millisecond)
				began, before := time.Now(), len(readAll(t, server.Kinesis()))
				unit := &open.units[0]
				if c.boot != "" {
					unit.BootID = c.boot
				}
				if c.old {
					unit.ServerTime, unit.BootID, unit.BootTime = time.Time{}, "", 0
				}
				cfg.Resume = open.units
				if p, err = producer.New(ctx, cfg); err != nil {
					t.Fatal(err)
				}
				if err := p.Close(ctx); err != nil {
					t.Fatal(err)
				}
				stats, took := p.Stats(), time.Since(began)
				if stats.LookedUp != c.lookedUp || stats.Found != c.lookedUp || stats.Delivered != 1 {
					t.Errorf("%+v", stats)
				}
				if c.lookedUp > 0 && took < 18*time.Second { // 3H after the first attempt
					t.Errorf("looked up after %v, when it might still have come", took)
				}
				all := readAll(t, server.Kinesis())
				if len(passed(all)) != 1 || len(all)-before != 1-int(c.lookedUp) {
					t.Errorf("the stream holds %v", all)
				}
			})
		})
	}
}
