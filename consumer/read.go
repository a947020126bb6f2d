package consumer

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// gather is the wait at the tip after records: it lets a batch gather.
const gather = 5 * time.Millisecond

// pages returns the configuration of a cursor over a shard's records. It begins with the record at
// after, since after may lie inside it, or at the origin if after is no record. The cursor tries
// again after every error that does not end the worker.
func (r *run) pages(
	shard runnel.ShardID, origin runnel.From, after runnel.Position, limit int,
) pages.Config {
	if after.Sequence.IsNumber() {
		origin = runnel.FromSequence(after.Sequence)
	}
	return pages.Config{
		Kinesis: r.reads, Stream: r.cfg.Stream, Shard: shard, From: origin, Limit: limit,
		CallTimeout: r.cfg.CallTimeout, Budget: r.budget(shard),
		Pace:    pages.Pace{Tip: min(gather, r.cfg.PollInterval), Idle: r.cfg.PollInterval},
		Backoff: retry.Backoff{Min: 50 * time.Millisecond, Max: longestBackoff},
		Persist: true, Of: knownStream{r},
		OnFailure:  func(err error, _ int) { r.failed(shard, err) },
		OnThrottle: func() { r.throttled(shard) },
	}
}

// knownStream is the stream as the worker's cursors see it.
type knownStream struct{ run *run }

func (k knownStream) Horizon() shardmap.Horizon {
	return shardmap.Horizon{
		Created: k.run.stream.Created, Retention: time.Duration(k.run.kept.Load()),
	}
}

func (k knownStream) Same(ctx context.Context) error { return k.run.sameStream(ctx) }

func (k knownStream) Shards(ctx context.Context) ([]runnel.Shard, error) {
	return k.run.shards.Shards(ctx, 0)
}

func (k knownStream) Lasting(err error) bool { return isFinal(err) }

// originOf returns the origin of a shard's reading as long as none of it has been processed.
// Another program may have made the row and left no time there: then the application's origin has
// it, or, for LATEST, reading begins now.
func (r *run) originOf(l lease.Lease) runnel.From {
	switch word := l.Checkpoint.Sequence; {
	case !l.From.IsZero():
		return runnel.FromTime(l.From)
	case word == runnel.Latest && r.origin.Word() != runnel.Latest:
		return runnel.FromLatest()
	case word == runnel.Latest || word == runnel.AtTimestamp:
		return r.origin
	default:
		return runnel.FromOldest()
	}
}

func sequenceOf(r *types.Record) runnel.SequenceNumber {
	return runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
}
