package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

var quiet = slog.New(slog.DiscardHandler)

// longOutage puts records of 20 keys. It loses the answers of the first calls, and all requests
// after them for longer than the horizon of two seconds, and splits a shard meanwhile. It returns
// the closed producer, the results and the records in the stream.
func longOutage(
	t *testing.T, reader func(*runneltest.Server) producer.Reader,
) (producer.Stats, []producer.Result, []stored) {
	seam.SetH(t, 2*time.Second)
	ctx := t.Context()
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("orders", 2),
		runneltest.WithLogger(quiet), runneltest.WithFaults("PutRecords:lose-request@1 PutRecords:lose-answer"))
	set := func(spec string) {
		if err := server.SetFaults(spec); err != nil {
			t.Fatal(err)
		}
	}
	var results []producer.Result
	p, err := producer.New(ctx, producer.Config{
		Stream: "orders", Kinesis: server.Kinesis(), Reader: reader(server),
		CallTimeout: 500 * time.Millisecond, MaxBatchRecords: 2, Logger: quiet,
		OnResult: func(_ runnel.Record, r producer.Result) { results = append(results, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(from, to int) {
		for i := from; i <= to; i++ {
			for key := range 20 {
				record := runnel.Record{PartitionKey: fmt.Sprint("key-", key), Data: fmt.Append(nil, i)}
				if err := p.PutFunc(ctx, record, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	put(1, 3)
	time.Sleep(10 * time.Millisecond)
	set("PutRecords:lose-request")
	put(4, 6)
	time.Sleep(time.Second)
	shards, err := shardsOf(ctx, server.Kinesis())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Kinesis().SplitShard(ctx, &kinesis.SplitShardInput{
		StreamName: aws.String("orders"), ShardToSplit: shards[0].ShardId,
		NewStartingHashKey: aws.String(middle(t, shards[0].HashKeyRange)),
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	set("")
	put(7, 8)
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return p.Stats(), results, readAll(t, server.Kinesis())
}

// An outage longer than the horizon does no harm: stored units are found, the others go out again,
// and behind the filter every record is there once and in order.
func TestLongOutageIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats, results, all := longOutage(t, func(s *runneltest.Server) producer.Reader {
			return s.Kinesis()
		})
		last := map[string]int{}
		for key := range 20 {
			last[fmt.Sprint("key-", key)] = 8
		}
		if doubles := checkStream(t, passed(all), map[string]int{}, last); doubles != 0 {
			t.Errorf("%d doubles pass the filter", doubles)
		}
		for _, r := range results {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
		if stats.Delivered != 160 || stats.LookedUp == 0 || stats.Found == 0 || stats.Renewed == 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// denied is a Reader without the right to read.
type denied struct{ producer.Reader }

func (denied) ListShards(
	context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}
}

// A producer without the right to read reports the records of unknown outcome, and goes on in
// order.
func TestLongOutageWithoutReading(t *testing.T) {
	for name, reader := range map[string]producer.Reader{"none": nil, "denied": denied{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stats, results, all := longOutage(t, func(*runneltest.Server) producer.Reader {
					return reader
				})
				unresolved := 0
				for _, r := range results {
					if errors.Is(r.Err, producer.ErrUnresolved) {
						unresolved++
						if !errors.Is(r.Err, producer.ErrMaybeStored) {
							t.Error(r.Err)
						}
					}
				}
				if unresolved == 0 || stats.Undelivered != uint64(unresolved) || stats.Found > 0 {
					t.Errorf("%d unresolved, %+v", unresolved, stats)
				}
				newest := map[string]int{}
				for _, r := range passed(all) {
					number, _ := strconv.Atoi(r.data)
					if number <= newest[r.key] {
						t.Errorf("key %s: %d comes after %d", r.key, number, newest[r.key])
					}
					newest[r.key] = number
				}
			})
		})
	}
}

// A unit that an earlier run left more than a horizon ago is not sent but looked up and found. The
// same holds for a stream that is given by its ARN.
func TestResumedAfterTheHorizon(t *testing.T) {
	seam.SetH(t, 10*time.Second)
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
			runneltest.WithStream("orders", 1), runneltest.WithFaults("PutRecords:lose-answer"))
		open := &openUnits{}
		stream, err := server.Kinesis().DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{
			StreamName: aws.String("orders"),
		})
		if err != nil {
			t.Fatal(err)
		}
		cfg := producer.Config{
			Stream: *stream.StreamDescriptionSummary.StreamARN, Kinesis: server.Kinesis(), Reader: server.Kinesis(),
			CallTimeout: time.Second, Journal: open, Logger: quiet,
			Linger: time.Millisecond, // all records in one unit
		}
		p, err := producer.New(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			record := runnel.Record{PartitionKey: "a", Data: fmt.Append(nil, i+1)}
			if err := p.PutMarked(ctx, record, uint64(i), nil); err != nil {
				t.Fatal(err)
			}
		}
		brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if err := p.Close(brief); err == nil {
			t.Fatal("everything was answered")
		}
		if err := server.SetFaults(""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		began := time.Now()
		var results []producer.Result
		cfg.Resume = open.units
		cfg.OnResult = func(_ runnel.Record, r producer.Result) { results = append(results, r) }
		if p, err = producer.New(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 9*time.Second {
			t.Errorf("it was looked up %v after the start, when it might still have come", took)
		}
		stats := p.Stats()
		if stats.Calls != 0 || stats.Found != 1 || len(results) != 3 || len(open.units) != 0 {
			t.Errorf("%d open, %+v", len(open.units), stats)
		}
		for i, r := range results {
			if r.Err != nil || r.Position.Sub != int64(i) || r.ShardID == "" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// openUnits is a Journal of the open units.
type openUnits struct{ units []producer.FrozenUnit }

func (o *openUnits) Frozen(_ context.Context, units []producer.FrozenUnit) error {
	o.units = append(o.units, units...)
	return nil
}

func (o *openUnits) Settled(units []producer.SettledUnit) {
	for _, end := range units {
		for i, u := range o.units {
			if u.Unit.Number == end.Number && u.Unit.Producer == end.Producer {
				o.units = append(o.units[:i], o.units[i+1:]...)
				break
			}
		}
	}
}

// frozenUnit returns a unit of an earlier run.
func frozenUnit(t *testing.T) producer.FrozenUnit {
	unit := aggregate.Unit{Producer: aggregate.ProducerID{1}, Number: 3, Low: 2}
	var e aggregate.Encoder
	if err := e.Add(aggregate.Record{
		PartitionKey: "a", Data: []byte("1"), Tags: unit.AppendTo(nil),
	}); err != nil {
		t.Fatal(err)
	}
	return producer.FrozenUnit{
		Unit: unit, PartitionKey: "a", Data: e.Seal(nil), Marks: []uint64{1},
	}
}

// The records of an absent unit go out in a new one, unless the stream may have trimmed the old
// one.
func TestResumedLongAfter(t *testing.T) {
	for age, unresolved := range map[time.Duration]bool{time.Hour: false, 30 * time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
				runneltest.WithStream("orders", 1))
			open := &openUnits{units: []producer.FrozenUnit{frozenUnit(t)}}
			open.units[0].FrozenAt = time.Now().Add(-age)
			var results []producer.Result
			p, err := producer.New(ctx, producer.Config{
				Stream: "orders", Kinesis: server.Kinesis(), Reader: server.Kinesis(), Journal: open,
				Resume: open.units, Logger: quiet,
				OnResult: func(_ runnel.Record, r producer.Result) { results = append(results, r) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if len(results) != 1 || len(open.units) != 0 ||
				errors.Is(results[0].Err, producer.ErrUnresolved) != unresolved ||
				(results[0].Err == nil) == unresolved {
				t.Errorf("%v: %d open, %+v", age, len(open.units), results)
			}
			all := readAll(t, server.Kinesis())
			if sent := len(all) == 1 && all[0].data == "1"; sent == unresolved {
				t.Errorf("%v: the stream holds %v", age, all)
			}
		})
	}
}
