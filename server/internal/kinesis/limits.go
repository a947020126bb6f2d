package kinesis

import (
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// SetLimits replaces the limits on throughput and calls; nil removes them. All usage counted so far
// is forgotten.
func (s *Service) SetLimits(plan *limit.Plan) { s.throttle.Store(newThrottle(plan, s.scaler.wake)) }

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

// limitCall counts a call against the limit of its operation. undo reverses that after the
// operation has failed. With no limits it costs one comparison.
func (s *Service) limitCall(call *wire.Call, in any) (undo func(), err error) {
	t := s.throttle.Load()
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
	now := s.clock.read()
	if id.Of().Per == limit.Stream {
		st := s.peek(call.World, stream, now)
		if st == nil {
			return nothing, nil // a missing stream has no meters; the operation returns that error
		}
		key.stream, key.created = st.Name, st.Created
	}
	if t.take(key, now) {
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

// peek returns a stream's newest value, durable or not, or nil.
func (s *Service) peek(world wire.World, name string, now int64) (st *catalogue.Stream) {
	s.catalogue.Read(func() { st = s.catalogue.Find(world, name, now) })
	return st
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

// limitWrites marks the entries above the limit.
func (s *Service) limitWrites(
	st *catalogue.Stream, entries []putRecordEntry, results []putResult, now int64,
) {
	if t := s.throttle.Load(); t != nil {
		t.writes(st, entries, results, now)
	}
}

// limitIterator counts a call of GetShardIterator.
func (s *Service) limitIterator(st *catalogue.Stream, sh *catalogue.Shard, now int64) error {
	t := s.throttle.Load()
	if t == nil || t.take(ofShard(limit.IteratorCalls, st, sh), now) {
		return nil
	}
	return shardExceeded(st, sh)
}

// limitRead counts a call of GetRecords, and countRead the records of its answer.
func (s *Service) limitRead(st *catalogue.Stream, sh *catalogue.Shard, now int64) error {
	t := s.throttle.Load()
	if t == nil || t.mayRead(st, sh, now) {
		return nil
	}
	return shardExceeded(st, sh)
}

func (s *Service) countRead(st *catalogue.Stream, r *reading, now int64) {
	if t := s.throttle.Load(); t != nil {
		t.read(st, r.shard, now, payloadSize(r.records))
	}
}

// payloadSize returns the bytes of records that count against the limits: data and partition keys.
func payloadSize(records []shardlog.Record) (bytes int) {
	for i := range records {
		bytes += len(records[i].Data) + len(records[i].PartitionKey)
	}
	return bytes
}

// limitSubscribe counts a call of SubscribeToShard. Its error is a guess: it is the only one in the
// model that fits.
func (s *Service) limitSubscribe(
	st *catalogue.Stream, sh *catalogue.Shard, consumer string, now int64,
) error {
	t := s.throttle.Load()
	if t == nil {
		return nil
	}
	key := ofShard(limit.SubscribeCalls, st, sh)
	key.consumer = consumer
	if t.take(key, now) {
		return nil
	}
	return fail(codeLimit, "Rate exceeded for consumer %s and shard %s in stream %s under "+
		"account %s.", consumer, sh.ID(), st.Name, st.World.Account)
}

// paceFanOut counts bytes of data and partition keys as sent to a consumer of a shard. It returns
// the wait before sending more.
func (s *Service) paceFanOut(
	st *catalogue.Stream, sh *catalogue.Shard, consumer string, bytes int,
) time.Duration {
	t := s.throttle.Load()
	if t == nil {
		return 0
	}
	return t.fanOut(st, sh, consumer, s.clock.read(), bytes)
}
