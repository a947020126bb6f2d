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

// elsewhere is a stream with another clock than its clients: its Dates, its arrivals, and the times
// that it is asked for are off by the same.
type elsewhere struct {
	*kinesis.Client
	by time.Duration

	asked     atomic.Int32              // ListShards
	from      []types.ShardIteratorType // of the iterators
	unready   func() bool               // the last record of a shard cannot be read yet
	neverZero bool                      // MillisBehindLatest is not 0
	foreign   bool                      // sequence numbers are of another stream
}

func newElsewhere(server *runneltest.Server, by time.Duration) *elsewhere {
	options := server.Kinesis().Options()
	options.HTTPClient = dates{options.HTTPClient, by}
	return &elsewhere{Client: kinesis.New(options), by: by}
}

// dates are the Dates of a clock that differs.
type dates struct {
	kinesis.HTTPClient
	by time.Duration
}

func (d dates) Do(request *http.Request) (*http.Response, error) {
	response, err := d.HTTPClient.Do(request)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		response.Header.Set("Date", date.Add(d.by).UTC().Format(http.TimeFormat))
	}
	return response, nil
}

func (e *elsewhere) ListShards(
	ctx context.Context, input *kinesis.ListShardsInput, options ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	e.asked.Add(1)
	return e.Client.ListShards(ctx, input, options...)
}

func (e *elsewhere) GetShardIterator(
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

func (e *elsewhere) GetRecords(
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

// lostAnswer puts records 1, 2 and 3 of some keys. It loses the answers of all calls with a record
// 2, or, if cold is set, with a record 1, for longer than H. It returns the records in the stream.
func lostAnswer(
	t *testing.T, by time.Duration, cold bool, bend func(*elsewhere, *producer.Config),
) (producer.Stats, []stored) {
	ctx := t.Context()
	seam.SetH(t, 2*time.Second)
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
		runneltest.WithStream("orders", 2))
	stream := newElsewhere(server, by)
	cfg := producer.Config{
		Stream: "orders", Kinesis: stream, Reader: stream,
		CallTimeout: 500 * time.Millisecond, Logger: quiet,
		OnResult: func(_ runnel.Record, r producer.Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		},
	}
	if bend != nil {
		bend(stream, &cfg)
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

// A look-up finds its units however wrong the producer's clock is: the stream's is an hour ahead of
// it or behind. It begins behind an acknowledged record, or else at the stream's time.
func TestLookUpByTheStreamsClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -20 * time.Minute, 0, 20 * time.Minute, time.Hour} {
		for cold, want := range map[bool]types.ShardIteratorType{
			false: types.ShardIteratorTypeAtSequenceNumber,
			true:  types.ShardIteratorTypeAtTimestamp,
		} {
			t.Run(fmt.Sprint(by, want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var stream *elsewhere
					stats, all := lostAnswer(t, by, cold, func(e *elsewhere, _ *producer.Config) {
						stream = e
					})
					onceAndInOrder(t, all)
					if stats.Found != 5 || stats.Renewed != 0 {
						t.Errorf("%+v", stats)
					}
					if stream.from[0] != want {
						t.Errorf("looked up from %v, want %v", stream.from[0], want)
					}
				})
			})
		}
	}
}

// A look-up waits for a shard with records that cannot be read yet, as on a disk that hangs, and
// logs that once.
func TestLookUpWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var log bytes.Buffer
		stats, all := lostAnswer(t, 0, true, func(e *elsewhere, cfg *producer.Config) {
			e.unready = func() bool { return time.Since(began) < time.Minute }
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		onceAndInOrder(t, all)
		if stats.Found != 5 || stats.Renewed != 0 {
			t.Errorf("%+v", stats)
		}
		if took := time.Since(began); took < time.Minute {
			t.Errorf("looked up after %v", took)
		}
		if n := strings.Count(log.String(), "cannot be read so far"); n != 1 {
			t.Errorf("said %d times:\n%s", n, log.String())
		}
	})
}

// Sequence numbers that the stream does not know, since it was deleted and made again, are left for
// the time.
func TestLookUpInAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stream *elsewhere
		stats, all := lostAnswer(t, 0, false, func(e *elsewhere, _ *producer.Config) {
			e.foreign, stream = true, e
		})
		onceAndInOrder(t, all)
		if stats.Found != 5 || stream.from[0] != types.ShardIteratorTypeAtSequenceNumber {
			t.Errorf("%v, %+v", stream.from[0], stats)
		}
	})
}

// A unit that may have been trimmed does not count as absent: by the stream's time, not by the
// producer's clock.
func TestTrimmedByTheStreamsClock(t *testing.T) {
	for age, unresolved := range map[time.Duration]bool{time.Hour: false, 30 * time.Hour: true} {
		for _, by := range []time.Duration{-40 * time.Hour, 0, 40 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
					runneltest.WithStream("orders", 1))
				stream := newElsewhere(server, by)
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

// In a shard that never says that all of it was read, a look-up ends at a record that arrived after
// it began.
func TestLookUpInABusyShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, stop := context.WithCancel(t.Context())
		defer stop()
		var others sync.WaitGroup
		began := time.Now()
		stats, all := lostAnswer(t, time.Hour, true, func(e *elsewhere, _ *producer.Config) {
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
		if took := time.Since(began); stats.Found != 5 || took > 20*time.Second {
			t.Errorf("after %v: %+v", took, stats)
		}
	})
}

// Before the first unit of a run goes out the stream is asked for its time, once; if that has no
// answer, the stream does not answer.
func TestFirstSendAsksForTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
			runneltest.WithStream("orders", 2), runneltest.WithFaults("ListShards:lose-request"))
		stream := newElsewhere(server, 0)
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

// A unit of another boot is sent again while the stream's clock has not advanced by more than H
// since its first send, and looked up after that.
func TestResumedInAnotherBoot(t *testing.T) {
	for _, c := range []struct {
		after    time.Duration
		boot     string // of the unit; "": as it is
		old      bool   // the journal knows FrozenAt alone
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
				stream := newElsewhere(server, -time.Hour)
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
				if c.lookedUp > 0 && took < 18*time.Second { // to 3H after the first send, or longer
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
