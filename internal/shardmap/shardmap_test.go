package shardmap_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pages is a stream of one shard a page.
type pages struct {
	shards []types.Shard
	errs   []error // of the first calls
	calls  int
	filter *types.ShardFilter
	arn    string
	delay  time.Duration
}

func (p *pages) ListShards(
	ctx context.Context, in *kinesis.ListShardsInput, _ ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if p.calls++; p.calls <= len(p.errs) {
		return nil, p.errs[p.calls-1]
	}
	if p.delay > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(p.delay):
		}
	}
	at := 0
	if in.NextToken != nil {
		if in.StreamName != nil || in.StreamARN != nil || in.ShardFilter != nil {
			return nil, &types.InvalidArgumentException{} // as AWS: the token says it all
		}
		at, _ = strconv.Atoi(*in.NextToken)
	} else {
		p.filter, p.arn = in.ShardFilter, aws.ToString(in.StreamARN)
	}
	out := &kinesis.ListShardsOutput{Shards: p.shards[at : at+1]}
	if at+1 < len(p.shards) {
		out.NextToken = aws.String(strconv.Itoa(at + 1))
	}
	return out, nil
}

func shard(id, low, high, last string, parents ...string) types.Shard {
	s := types.Shard{
		ShardId: aws.String(id),
		HashKeyRange: &types.HashKeyRange{
			StartingHashKey: aws.String(low), EndingHashKey: aws.String(high),
		},
		SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("5")},
	}
	if last != "" {
		s.SequenceNumberRange.EndingSequenceNumber = aws.String(last)
	}
	if len(parents) > 0 {
		s.ParentShardId = &parents[0]
	}
	if len(parents) > 1 {
		s.AdjacentParentShardId = &parents[1]
	}
	return s
}

func stream() *pages {
	return &pages{shards: []types.Shard{
		shard("a", "0", "9", "7"), shard("b", "10", "99", "8"), shard("c", "0", "99", "", "a", "b"),
	}}
}

func TestList(t *testing.T) {
	filter := &types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon}
	api := stream()
	shards, err := shardmap.List(t.Context(), api, "orders", filter)
	if err != nil || len(shards) != 3 || api.calls != 3 || api.filter != filter {
		t.Fatalf("%+v, %v in %d calls", shards, err, api.calls)
	}
	c := shards[2]
	if c.ID != "c" || !c.Open() || shards[0].Open() || c.First != "5" || shards[0].Last != "7" ||
		!slices.Equal(c.Parents, []runnel.ShardID{"a", "b"}) ||
		c.Range != (keyspace.Range{End: keyspace.Key{Lo: 99}}) {
		t.Errorf("got %+v", shards)
	}
	if got := shardmap.ChildrenOf(shards, "b"); len(got) != 1 || got[0].ID != "c" {
		t.Errorf("children: %+v", got)
	}
}

// A list by an ARN names the stream on its first page alone, as AWS wants it.
func TestListByARN(t *testing.T) {
	const arn = "arn:aws:kinesis:us-east-1:111122223333:stream/orders"
	api := stream()
	shards, err := shardmap.List(t.Context(), api, arn, nil)
	if err != nil || len(shards) != 3 || api.arn != arn {
		t.Errorf("%+v, %v by %s", shards, err, api.arn)
	}
}

// Outages and throttles are retried, refusals are not, and a cancelled context ends the wait.
func TestListRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := errors.New("cut")
		api := stream()
		api.errs = []error{cut, &types.LimitExceededException{}, cut}
		if shards, err := shardmap.List(t.Context(), api, "orders", nil); err != nil || len(shards) != 3 {
			t.Errorf("%+v, %v", shards, err)
		}
		api = stream()
		api.errs = slices.Repeat([]error{cut}, 100)
		began := time.Now()
		if _, err := shardmap.List(t.Context(), api, "orders", nil); !errors.Is(err, cut) ||
			time.Since(began) > 20*time.Second || api.calls < 4 {
			t.Errorf("%d calls in %s: %v", api.calls, time.Since(began), err)
		}
		api = stream()
		api.errs = []error{&types.ResourceNotFoundException{}}
		var missing *types.ResourceNotFoundException
		if _, err := shardmap.List(t.Context(), api, "orders", nil); !errors.As(err, &missing) ||
			api.calls != 1 {
			t.Errorf("%d calls: %v", api.calls, err)
		}
		api = stream()
		api.errs = slices.Repeat([]error{cut}, 100)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("enough"))
		defer cancel()
		if _, err := shardmap.List(ctx, api, "orders", nil); err == nil || err.Error() !=
			"list the shards of stream orders: enough" {
			t.Errorf("got %v", err)
		}
	})
}

// A list that cannot be read is an error, not a shard without a range.
func TestListRefuses(t *testing.T) {
	for _, s := range []types.Shard{
		shard("a", "x", "9", ""), shard("a", "0", "", ""), {ShardId: aws.String("a")},
	} {
		_, err := shardmap.List(t.Context(), &pages{shards: []types.Shard{s}}, "orders", nil)
		if !errors.Is(err, shardmap.ErrShard) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// Many callers share one fetch, and a list that is fresh enough is not fetched again.
func TestMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := stream()
		api.delay = time.Second
		m := shardmap.New(api, "orders")
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if shards, err := m.Shards(t.Context(), time.Minute); err != nil || len(shards) != 3 {
					t.Errorf("%+v, %v", shards, err)
				}
			})
		}
		group.Wait()
		if api.calls != 3 {
			t.Errorf("%d calls, want one fetch of 3 pages", api.calls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := m.Shards(ctx, 0); err == nil {
			t.Error("a list older than now was fresh enough")
		}
		<-time.After(time.Minute)
		if _, err := m.Shards(t.Context(), time.Hour); err != nil || api.calls != 4 {
			t.Errorf("%d calls, %v", api.calls, err)
		}
		if _, err := m.Shards(t.Context(), time.Minute); err != nil || api.calls != 7 {
			t.Errorf("%d calls, %v", api.calls, err)
		}
	})
}
