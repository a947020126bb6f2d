package kinesis

import (
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// SetLimits replaces the limits on throughput and calls; nil removes them. All usage counted so far
// is forgotten.
func (s *Service) SetLimits(plan *limit.Plan) {
	s.limits.throttle.Store(newThrottle(plan, s.scaler.wake))
}

// limiter counts the calls and the throughput of the streams against the limits in force.
type limiter struct {
	streams  *streams
	throttle atomic.Pointer[throttle] // nil: no limits
}

// A named input has a method for the name of its stream, in the world of the call; an identified
// one has a method for its consumer.
type (
	named interface {
		name(world wire.World) (string, error)
	}
	identified interface {
		identify(world wire.World) (consumerName, error)
	}
)

// nothing is the undo function of a call that was not counted.
func nothing() {}

// call counts a call against the limit of its operation. undo reverses that after the
// operation has failed. With no limits it costs one comparison.
func (l *limiter) call(call *wire.Call, in any) (undo func(), err error) {
	t := l.throttle.Load()
	if t == nil {
		return nothing, nil
	}
	id, found := limit.OfOperation(call.Operation)
	if !found {
		return nothing, nil
	}
	key := meterKey{id: id, world: call.World}
	stream, err := streamOf(call.World, in)
	if err != nil {
		return nothing, nil //nolint:nilerr // the operation finds the same and words it
	}
	now := l.streams.clock.read()
	if id.Of().Per == limit.Stream {
		st := l.streams.peek(call.World, stream, now)
		if st == nil {
			return nothing, nil // a missing stream has no meters; the operation returns that error
		}
		key.stream, key.created = st.Name, st.Created
	}
	if t.take(key, now.Elapsed) {
		return func() { t.giveBack(key) }, nil
	}
	return nil, rateExceeded(call.World, stream)
}

// streamOf returns the name of an input's stream; "" if the input names none.
func streamOf(world wire.World, in any) (string, error) {
	arn := func(text *string) (string, error) { return (&target{StreamARN: text}).name(world) }
	switch in := in.(type) {
	case *createStreamInput:
		return *in.StreamName, nil
	case *listShardsInput:
		if in.StreamName == nil && in.StreamARN == nil {
			return "", nil // a NextToken
		}
		return in.name(world)
	case named:
		return in.name(world)
	case identified:
		id, err := in.identify(world)
		return id.stream, err
	case *registerConsumerInput:
		return arn(in.StreamARN)
	case *listConsumersInput:
		return arn(in.StreamARN)
	case *maxRecordSizeInput:
		return arn(in.StreamARN)
	case *updateStreamModeInput:
		return arn(in.StreamARN)
	default:
		return "", nil
	}
}

// rateExceeded is AWS's answer to calls that come too often. The first text was seen for
// DescribeStream (botocore#821), the second for calls that name no stream
// (graylog-plugin-integrations#341).
func rateExceeded(world wire.World, stream string) *wire.Error {
	if stream != "" {
		return fail(codeLimit, "Rate exceeded for stream %s under account %s.",
			stream, world.Account)
	}
	return fail(codeLimit, "Rate exceeded for account %s.", world.Account)
}

// shardExceeded is AWS's answer when a shard's throughput is used up, also for single records
// (seen: kinesis-readable#4).
func shardExceeded(st *catalogue.Stream, sh *catalogue.Shard) *wire.Error {
	return fail(codeThrottled, "Rate exceeded for shard %s in stream %s under account %s.",
		sh.ID(), st.Name, st.World.Account)
}

// writes marks the entries above the limit.
func (l *limiter) writes(st *catalogue.Stream, p *putRequest, now moment) {
	if t := l.throttle.Load(); t != nil {
		t.writes(st, p, now.Elapsed)
	}
}

// iterator counts a call of GetShardIterator.
func (l *limiter) iterator(st *catalogue.Stream, sh *catalogue.Shard, now moment) error {
	t := l.throttle.Load()
	if t == nil || t.take(ofShard(limit.IteratorCalls, st, sh), now.Elapsed) {
		return nil
	}
	return shardExceeded(st, sh)
}

// read counts a call of GetRecords, and countRead the records of its answer.
func (l *limiter) read(st *catalogue.Stream, sh *catalogue.Shard, now moment) error {
	t := l.throttle.Load()
	if t == nil || t.mayRead(st, sh, now.Elapsed) {
		return nil
	}
	return shardExceeded(st, sh)
}

func (l *limiter) countRead(st *catalogue.Stream, r *reading, now moment) {
	if t := l.throttle.Load(); t != nil {
		t.read(st, r.shard, now.Elapsed, payloadSize(r.records))
	}
}

// payloadSize returns the bytes of records that count against the limits: data and partition keys.
func payloadSize(records []shardlog.Record) (bytes int) {
	for i := range records {
		bytes += len(records[i].Data) + len(records[i].PartitionKey)
	}
	return bytes
}

// subscribe counts a call of SubscribeToShard. Its error is a guess: it is the only one in the
// model that fits.
func (l *limiter) subscribe(
	st *catalogue.Stream, sh *catalogue.Shard, consumer string, now moment,
) error {
	t := l.throttle.Load()
	if t == nil {
		return nil
	}
	key := ofShard(limit.SubscribeCalls, st, sh)
	key.consumer = consumer
	if t.take(key, now.Elapsed) {
		return nil
	}
	return fail(codeLimit, "Rate exceeded for consumer %s and shard %s in stream %s under "+
		"account %s.", consumer, sh.ID(), st.Name, st.World.Account)
}

// fanOut counts bytes of data and partition keys as sent to a consumer of a shard. It returns
// the wait before sending more.
func (l *limiter) fanOut(
	st *catalogue.Stream, sh *catalogue.Shard, consumer string, bytes int,
) time.Duration {
	t := l.throttle.Load()
	if t == nil {
		return 0
	}
	return t.fanOut(st, sh, consumer, l.streams.clock.read().Elapsed, bytes)
}
