package kinesis

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/shardlog"
)

type getShardIteratorInput struct {
	target
	ShardID                *string `json:"ShardId"`
	ShardIteratorType      *string
	StartingSequenceNumber *string
	Timestamp              *timestamp
}

// The types of iterators; AT_TIMESTAMP is also a shard filter's.
const (
	atSequenceNumber    = "AT_SEQUENCE_NUMBER"
	afterSequenceNumber = "AFTER_SEQUENCE_NUMBER"
	trimHorizon         = "TRIM_HORIZON"
	latest              = "LATEST"
)

var iteratorTypeRule = textRule{max: 1 << 20, values: []string{
	afterSequenceNumber, latest, atTimestamp, atSequenceNumber, trimHorizon,
}}

func (in *getShardIteratorInput) validate(v *violations) {
	v.required("shardId", in.ShardID, nameRule)
	v.required("shardIteratorType", in.ShardIteratorType, iteratorTypeRule)
	v.optional("startingSequenceNumber", in.StartingSequenceNumber, numberRule)
	in.target.validate(v)
	if in.ShardIteratorType == nil {
		return
	}
	switch kind := *in.ShardIteratorType; kind {
	case atSequenceNumber, afterSequenceNumber:
		if in.StartingSequenceNumber == nil {
			v.fail(iteratorMembers(kind + " and no StartingSequenceNumber."))
		}
	case trimHorizon, latest:
		if in.StartingSequenceNumber != nil {
			v.fail(iteratorMembers(kind + " and also a StartingSequenceNumber."))
		}
	case atTimestamp:
		if in.Timestamp == nil {
			v.fail(invalid("Must specify timestamp parameter for iterator of type %s.", kind))
		}
		if in.StartingSequenceNumber != nil {
			v.fail(iteratorMembers(kind + " and also a StartingSequenceNumber."))
		}
	}
}

func iteratorMembers(specified string) *awswire.Error {
	return invalid("Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and "+
		"StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "+
		"Request specified %s", specified)
}

type getShardIteratorOutput struct{ ShardIterator string }

// getShardIterator makes an iterator. Every type is resolved to a record's index now: LATEST
// is what follows the newest record at this moment, not at the first read.
func (s *Service) getShardIterator(
	ctx context.Context, world awswire.World, in *getShardIteratorInput,
) (any, error) {
	name, err := in.name(world)
	if err != nil {
		return nil, err
	}
	index, ok := parseShard(*in.ShardID)
	if !ok {
		return nil, couldNotFindShard(world, name, *in.ShardID)
	}
	st, now, err := s.view(ctx, world, name)
	if err != nil {
		return nil, err
	}
	var sh *shard
	var records *shardlog.Shard
	if st != nil {
		if sh = st.shard(index, now); sh != nil {
			records = s.shards.Shard(sh.Log)
		}
	}
	if records == nil {
		return nil, shardMissing(world, name, shardName(index))
	}
	next, err := in.resolve(ctx, st, sh, records, now)
	if errors.Is(err, shardlog.ErrDeleted) {
		return nil, shardMissing(world, name, shardName(index))
	}
	if err != nil {
		return nil, err
	}
	return &getShardIteratorOutput{s.sealer.Load().sealIterator(world, iterator{
		issued: now, created: st.Created, shard: index, next: next, stream: name,
	})}, nil
}

// resolve returns the index of the first record to read.
func (in *getShardIteratorInput) resolve(
	ctx context.Context, st *stream, sh *shard, records *shardlog.Shard, now int64,
) (uint64, error) {
	oldest, next := records.Bounds()
	switch *in.ShardIteratorType {
	case trimHorizon:
		return oldest, nil
	case latest:
		return next, nil
	case atTimestamp:
		at := int64(*in.Timestamp)
		if at > now {
			return 0, invalid("The timestampInMillis parameter cannot be greater than the "+
				"currentTimestampInMillis. timestampInMillis: %d, currentTimestampInMillis: %d",
				at, now)
		}
		index, err := records.IndexAt(ctx, at)
		if err != nil {
			return 0, fmt.Errorf("iterator on stream %s, %s: %w", st.Name, sh.id(), err)
		}
		return index, nil
	}
	n, err := in.startingNumber(st, sh)
	if err != nil {
		return 0, err
	}
	switch {
	case n.index == endIndex && !sh.open():
		return next, nil // all that there is: next is final, since the shard is closed
	case n.index >= next:
		return 0, invalidNumber(*in.StartingSequenceNumber, st, sh, "is invalid.")
	case *in.ShardIteratorType == afterSequenceNumber:
		return n.index + 1, nil
	default:
		return n.index, nil
	}
}

// startingNumber reads StartingSequenceNumber, which must be one of the shard's.
func (in *getShardIteratorInput) startingNumber(st *stream, sh *shard) (sequenceNumber, error) {
	text := *in.StartingSequenceNumber
	n, err := parseNumber(text)
	switch {
	case err != nil:
		return n, invalidNumber(text, st, sh, "is invalid.")
	case n.shard != sh.Index:
		return n, invalid("Invalid StartingSequenceNumber. It encodes %s, while it was used in a "+
			"call to a shard with %s", shardName(n.shard), sh.id())
	case n.version != numberVersion || n.created != sh.Created:
		return n, invalidNumber(text, st, sh,
			"is invalid because it did not come from this stream.")
	}
	return n, nil
}

func invalidNumber(text string, st *stream, sh *shard, why string) error {
	return invalid("StartingSequenceNumber %s used in GetShardIterator on shard %s in stream %s "+
		"under account %s %s", text, sh.id(), st.Name, st.World.Account, why)
}
