package follow_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/runneltest"
)

var errEnough = errors.New("enough")

// stream is a stream of a server in memory, and the records that a follower received from it.
type stream struct {
	t      *testing.T
	client *kinesis.Client
	api    *client

	mu   sync.Mutex
	seen []string // key=data

	noticed sync.Mutex
	notices []follow.Notice
}

// inBubble runs a test on a stream in virtual time.
func inBubble(t *testing.T, shards int, test func(*testing.T, *stream)) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", shards),
			runneltest.WithStreamDelay(-1))
		s := &stream{t: t, client: server.Kinesis()}
		s.api = &client{Client: s.client}
		test(t, s)
	})
}

func (s *stream) put(key, data string) {
	s.t.Helper()
	if _, err := s.client.PutRecord(s.t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("s"), PartitionKey: &key, Data: []byte(data),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// putAll puts numbers of all keys, in turns.
func (s *stream) putAll(keys, from, to int) {
	for n := from; n < to; n++ {
		for key := range keys {
			s.put(fmt.Sprint("k", key), fmt.Sprint(n))
		}
	}
}

func (s *stream) split(shard int, at keyspace.Key) {
	s.t.Helper()
	if _, err := s.client.SplitShard(s.t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String("s"), ShardToSplit: aws.String(id(shard)),
		NewStartingHashKey: aws.String(at.String()),
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stream) merge(a, b int) {
	s.t.Helper()
	if _, err := s.client.MergeShards(s.t.Context(), &kinesis.MergeShardsInput{
		StreamName: aws.String("s"), ShardToMerge: aws.String(id(a)),
		AdjacentShardToMerge: aws.String(id(b)),
	}); err != nil {
		s.t.Fatal(err)
	}
}

func id(n int) string { return fmt.Sprintf("shardId-%012d", n) }

// follow reads until it is done, or has received that many records (0: never).
func (s *stream) follow(cfg follow.Config, enough int) error {
	cfg.Stream, cfg.Kinesis = "s", s.api
	cfg.Handle = func(_ context.Context, records iter.Seq[*runnel.Record]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for record := range records {
			s.seen = append(s.seen, record.PartitionKey+"="+string(record.Data))
		}
		if enough > 0 && len(s.seen) >= enough {
			return errEnough
		}
		return nil
	}
	cfg.OnNotice = func(n follow.Notice) {
		s.noticed.Lock()
		defer s.noticed.Unlock()
		s.notices = append(s.notices, n)
	}
	return follow.Run(s.t.Context(), cfg)
}

func (s *stream) count(kind follow.Kind) (n int) {
	s.noticed.Lock()
	defer s.noticed.Unlock()
	for _, notice := range s.notices {
		if notice.Kind == kind {
			n++
		}
	}
	return n
}

// wantAll checks that the numbers of all keys came once and in order.
func (s *stream) wantAll(keys, from, to int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]int{}
	for _, record := range s.seen {
		key, data, _ := strings.Cut(record, "=")
		if want := from + next[key]; data != fmt.Sprint(want) {
			s.t.Fatalf("%s: %s came where %d should", key, data, want)
		}
		next[key]++
	}
	if len(s.seen) != keys*(to-from) {
		s.t.Errorf("%d records, want %d", len(s.seen), keys*(to-from))
	}
}

// Over splits and merges, parents come before children, from the oldest record as well as for a
// follower that is already running.
func TestReshards(t *testing.T) {
	reshard := func(s *stream) {
		s.putAll(8, 0, 5)
		s.split(0, keyspace.Uniform(4)[1].Start)
		s.putAll(8, 5, 10)
		s.merge(3, 1)
		s.putAll(8, 10, 15)
		s.split(4, keyspace.Uniform(2)[1].Start)
		s.putAll(8, 15, 20)
	}
	t.Run("oldest", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, s *stream) {
			reshard(s)
			if err := s.follow(follow.Config{Once: true}, 0); err != nil {
				t.Fatal(err)
			}
			s.wantAll(8, 0, 20)
		})
	})
	t.Run("latest", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, s *stream) {
			s.putAll(8, -5, 0)
			var group sync.WaitGroup
			group.Go(func() {
				if err := s.follow(follow.Config{From: runnel.FromLatest()}, 160); !errors.Is(err, errEnough) {
					t.Error(err)
				}
			})
			<-time.After(10 * time.Second)
			reshard(s)
			group.Wait()
			s.wantAll(8, 0, 20)
			if began := s.count(follow.Began); began != 7 {
				t.Errorf("%d shards were read, want 7", began)
			}
		})
	})
	t.Run("parallel", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, s *stream) {
			reshard(s)
			if err := s.follow(follow.Config{Once: true, Parallel: 1}, 0); err != nil {
				t.Fatal(err)
			}
			s.wantAll(8, 0, 20)
		})
	})
}

// A follower that begins with a time, a sequence number or one shard reads that, and no more.
func TestFrom(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, s *stream) {
		s.put("k0", "0")
		<-time.After(time.Minute)
		noon := time.Now()
		s.put("k0", "1")
		out, err := s.client.PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("s"), PartitionKey: aws.String("k0"), Data: []byte("2"),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.put("k3", "9")
		for _, c := range []struct {
			from  string
			shard runnel.ShardID
			want  string
		}{
			{"oldest", "", "k0=0 k0=1 k0=2 k3=9"},
			{noon.Format(time.RFC3339Nano), "", "k0=1 k0=2 k3=9"},
			{"latest", "", ""},
			{"oldest", runnel.ShardID(*out.ShardId), "k0=0 k0=1 k0=2"},
			{*out.SequenceNumber, runnel.ShardID(*out.ShardId), "k0=2"},
		} {
			from, err := runnel.ParseFrom(c.from)
			if n := runnel.SequenceNumber(c.from); n.IsNumber() {
				from, err = runnel.FromSequence(n), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			s.seen = nil
			err = s.follow(follow.Config{From: from, Shard: c.shard, Once: true}, 0)
			slices.Sort(s.seen)
			if got := strings.Join(s.seen, " "); got != c.want || err != nil {
				t.Errorf("%s of %q: %q, %v, want %q", c.from, c.shard, got, err, c.want)
			}
		}
	})
}

// A follower of one shard ends with the shard.
func TestShardEnds(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.putAll(4, 0, 2)
		s.split(0, keyspace.Uniform(2)[1].Start)
		s.putAll(4, 2, 4)
		err := s.follow(follow.Config{Shard: runnel.ShardID(id(0))}, 0)
		if err != nil || s.count(follow.Began) != 1 {
			t.Errorf("%v, %d shards", err, s.count(follow.Began))
		}
		s.wantAll(4, 0, 2)
	})
}

// unit makes an aggregate of one record, with an identity.
func unit(number, low uint64, key, data string) string {
	u := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: number, Low: low}
	var encoder aggregate.Encoder
	if err := encoder.Add(aggregate.Record{
		PartitionKey: key, Data: []byte(data), Tags: u.AppendTo(nil),
	}); err != nil {
		panic(err)
	}
	return string(encoder.Seal(nil))
}

// Doubles are dropped, even if the first copy is in a parent shard. An aggregate for another shard
// is skipped, and leaves no trace: its unit comes again.
func TestUnits(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		low, high := "k0", "k3" // of the two halves
		if keyspace.Of(high).Less(keyspace.Of(low)) {
			low, high = high, low
		}
		s.put(low, unit(1, 1, low, "a"))
		s.put(high, unit(2, 1, high, "b"))
		s.put(low, unit(1, 1, low, "a"))
		s.split(0, keyspace.Uniform(2)[1].Start)
		s.put(high, unit(2, 1, high, "b"))
		s.put(low, unit(3, 2, high, "c")) // packed for another shard
		s.put(high, unit(3, 2, high, "c"))
		s.put(low, unit(4, 4, low, "d"))
		s.put(low, "plain")
		want := []string{
			low + "=a", high + "=b", high + "=c", low + "=d", low + "=plain",
		}
		slices.Sort(want)
		if err := s.follow(follow.Config{Once: true}, 0); err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.seen)
		if !slices.Equal(s.seen, want) || s.count(follow.Void) != 1 {
			t.Errorf("%q and %d void, want %q and 1", s.seen, s.count(follow.Void), want)
		}
		s.seen = nil
		err := s.follow(follow.Config{Once: true, Doubles: true}, 0)
		if len(s.seen) != len(want)+2 || err != nil {
			t.Errorf("with doubles: %q, %v", s.seen, err)
		}
	})
}

// client is the SDK's client, with faults.
type client struct {
	*kinesis.Client
	mu    sync.Mutex // guards reads, and fault while it runs
	fault func(op string) error
	reads []time.Time
	late  string // if set, an iterator at a sequence number begins behind it
}

func (c *client) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	c.mu.Lock()
	c.reads = append(c.reads, time.Now())
	c.mu.Unlock()
	if err := c.failure("GetRecords"); err != nil {
		return nil, err
	}
	in.Limit = aws.Int32(7) // so that there are many pages
	return c.Client.GetRecords(ctx, in, options...)
}

func (c *client) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, options ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	if err := c.failure("GetShardIterator"); err != nil {
		return nil, err
	}
	if c.late != "" && in.ShardIteratorType == types.ShardIteratorTypeAtSequenceNumber {
		in.StartingSequenceNumber = &c.late
	}
	return c.Client.GetShardIterator(ctx, in, options...)
}

func (c *client) failure(op string) error {
	if c.fault == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault(op)
}

// Expired iterators, throttling and outages cost time and no record, and none comes twice. The
// reads of a shard keep their distance.
func TestFaults(t *testing.T) {
	for name, failure := range map[string]error{
		"expired":   &types.ExpiredIteratorException{},
		"throttled": &types.ProvisionedThroughputExceededException{},
		"outage":    errors.New("connection reset"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, s *stream) {
				calls := 0
				s.api.fault = func(string) error {
					if calls++; calls%5 >= 3 && calls < 60 {
						return failure
					}
					return nil
				}
				s.putAll(3, 0, 40)
				if err := s.follow(follow.Config{Once: true}, 0); err != nil {
					t.Fatal(err)
				}
				s.wantAll(3, 0, 40)
				if got := s.count(follow.Gap); got != 0 || calls < 20 {
					t.Errorf("%d gaps, %d calls", got, calls)
				}
			})
		})
	}
}

func TestPace(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.putAll(3, 0, 40)
		if err := s.follow(follow.Config{}, 120); !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		if len(s.api.reads) < 17 {
			t.Fatalf("%d reads", len(s.api.reads))
		}
		for i, read := range s.api.reads[1:] {
			if pause := read.Sub(s.api.reads[i]); pause < 200*time.Millisecond {
				t.Errorf("read %d came %v after the one before", i+1, pause)
			}
		}
	})
}

// If a follower from now on loses its iterator before the first record, the new one begins at the
// same moment.
func TestLatestKeepsItsBeginning(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.put("k", "before")
		<-time.After(3 * time.Second)
		failed := false
		s.api.fault = func(op string) error {
			if op == "GetRecords" && !failed {
				failed = true
				s.put("k", "while it was lost")
				return &types.ExpiredIteratorException{}
			}
			return nil
		}
		err := s.follow(follow.Config{From: runnel.FromLatest()}, 1)
		if !errors.Is(err, errEnough) || s.seen[0] != "k=while it was lost" {
			t.Errorf("%v, %q", err, s.seen)
		}
	})
}

// A notice reports records that are trimmed under a follower.
func TestGap(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		var last string
		for n := range 20 {
			out, err := s.client.PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: aws.String("s"), PartitionKey: aws.String("k"),
				Data: fmt.Append(nil, n),
			})
			if err != nil {
				t.Fatal(err)
			}
			last = *out.SequenceNumber
		}
		calls := 0
		s.api.fault = func(op string) error {
			if calls++; calls == 4 {
				s.api.late = last
				return &types.ExpiredIteratorException{}
			}
			return nil
		}
		if err := s.follow(follow.Config{Once: true}, 0); err != nil {
			t.Fatal(err)
		}
		if s.count(follow.Gap) != 1 || len(s.seen) >= 20 || s.seen[len(s.seen)-1] != "k=19" {
			t.Errorf("%d gaps, %q", s.count(follow.Gap), s.seen)
		}
	})
}

// Run returns errors that no retry mends, and the context's cause at its end.
func TestEnds(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, s *stream) {
		var missing *types.ResourceNotFoundException
		run := func(cfg follow.Config) error {
			cfg.Kinesis = s.client
			cfg.Handle = func(context.Context, iter.Seq[*runnel.Record]) error { return nil }
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errEnough)
			defer cancel()
			return follow.Run(ctx, cfg)
		}
		if err := run(follow.Config{Stream: "none"}); !errors.As(err, &missing) {
			t.Errorf("no stream: %v", err)
		}
		if err := run(follow.Config{Stream: "s", Shard: "x"}); !errors.Is(err, follow.ErrShard) {
			t.Errorf("no shard: %v", err)
		}
		if err := run(follow.Config{Stream: "s"}); !errors.Is(err, errEnough) {
			t.Errorf("the context's end: %v", err)
		}
		var invalid *types.InvalidArgumentException
		if err := run(follow.Config{
			Stream: "s", Shard: runnel.ShardID(id(0)), From: runnel.FromSequence("1"),
		}); !errors.As(err, &invalid) {
			t.Errorf("no such sequence number: %v", err)
		}
		if err := run(follow.Config{From: runnel.FromSequence("1")}); err == nil ||
			!strings.Contains(err.Error(), "name the shard") ||
			!strings.Contains(err.Error(), "Stream is missing") {
			t.Errorf("a bad configuration: %v", err)
		}
		// A stream that is deleted under its follower.
		time.AfterFunc(10*time.Second, func() {
			_, _ = s.client.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{
				StreamName: aws.String("s"),
			})
		})
		if err := run(follow.Config{Stream: "s"}); !errors.As(err, &missing) {
			t.Errorf("a deleted stream: %v", err)
		}
	})
}

// The reading of each shard begins where Begin says: a parent is left out, and one child begins
// behind a record.
func TestBegin(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *stream) {
		s.putAll(8, 0, 5)
		s.split(0, keyspace.Uniform(2)[1].Start)
		s.putAll(8, 5, 10)
		var after runnel.Position
		if err := s.follow(follow.Config{Once: true, Begin: func(
			_ context.Context, shard runnel.Shard, _ *aggregate.Filter,
		) (follow.Beginning, error) {
			if string(shard.ID) == id(0) {
				return follow.Beginning{After: runnel.End()}, nil
			}
			return follow.Beginning{}, nil
		}}, 0); err != nil {
			t.Fatal(err)
		}
		s.wantAll(8, 5, 10)
		for _, notice := range s.notices {
			if notice.Kind == follow.Began && string(notice.Shard) == id(0) {
				t.Error("the parent was read")
			}
			if notice.Kind == follow.Ended && string(notice.Shard) == id(1) {
				after = runnel.Position{Sequence: notice.After}
			}
		}
		s.seen = nil
		if err := s.follow(follow.Config{Shard: runnel.ShardID(id(1)), Once: true, Begin: func(
			context.Context, runnel.Shard, *aggregate.Filter,
		) (follow.Beginning, error) {
			return follow.Beginning{After: after}, nil
		}}, 0); err != nil || len(s.seen) > 0 {
			t.Errorf("behind the last record came %d: %v", len(s.seen), err)
		}
	})
}
