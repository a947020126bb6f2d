package producer

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// deletableStream is a stream that can be deleted for a while.
type deletableStream struct {
	*sharded
	gone atomic.Bool
}

func (v *deletableStream) PutRecords(ctx context.Context, input *kinesis.PutRecordsInput,
	options ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	if v.gone.Load() {
		return nil, apiError("ResourceNotFoundException", "Stream orders not found")
	}
	return v.sharded.PutRecords(ctx, input, options...)
}

func (v *deletableStream) ListShards(ctx context.Context, input *kinesis.ListShardsInput,
	options ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if v.gone.Load() {
		return nil, apiError("ResourceNotFoundException", "Stream orders not found")
	}
	return v.sharded.ListShards(ctx, input, options...)
}

// A stream is deleted and created again with other shards, of which the first has the name of the
// old one's first. Readers drop no acknowledged record, whether the producer saw that the stream
// was missing or had put nothing for a while.
func TestStreamThatIsMadeAgain(t *testing.T) {
	for _, seen := range []bool{true, false} {
		eachOrderByShard(t, func(t *testing.T, order Order) {
			s := newSharded(1)
			v := &deletableStream{sharded: s}
			var d aggregate.Decoder
			readable := map[string]bool{}
			s.refuse = func(shard int, r *types.PutRecordsRequestEntry) bool {
				if !d.Open(r.Data) {
					t.Error("a record without an identity")
				} else if d.Check(s.ranges[shard]) == nil {
					for _, inside := range d.Records() {
						readable[strings.Clone(inside.PartitionKey)] = true
					}
				}
				return false
			}
			p, ctx := s.open(t, func(c *Config) { c.Order, c.Kinesis, c.Reader, c.Linger = order, v, v, 10*time.Millisecond })
			var delivered atomic.Int64
			keys := keysIn(keyspace.Uniform(8)[0], "key-", 1) // which the first shard takes in any case
			keys = append(keys, keysIn(keyspace.All(), "key-", 100)...)
			flush := func() {
				if err := p.Flush(ctx); err != nil && !v.gone.Load() {
					t.Error(err)
				}
			}
			putEach(t, p, ctx, keys, &delivered)
			flush()
			if v.gone.Store(true); seen {
				putEach(t, p, ctx, keys[:1], &atomic.Int64{})
				flush()
				synctest.Wait() // a listing under way would refuse the next records
			} else {
				time.Sleep(2 * time.Minute)
			}
			again := newSharded(8)
			s.set(func() { s.ranges, s.ids, s.shards = again.ranges, again.ids, again.shards })
			v.gone.Store(false)
			clear(readable)
			delivered.Store(0)
			putEach(t, p, ctx, keys, &delivered)
			flush()
			closeNow(t, p, ctx)
			for _, key := range keys {
				if !readable[key] {
					t.Fatalf("seen %v: %d records are delivered, and readers drop that of %s", seen,
						delivered.Load(), key)
				}
			}
		})
	}
}
