package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// The types of positions; AT_TIMESTAMP is also a shard filter's.
const (
	atSequenceNumber    = "AT_SEQUENCE_NUMBER"
	afterSequenceNumber = "AFTER_SEQUENCE_NUMBER"
	trimHorizon         = "TRIM_HORIZON"
	latest              = "LATEST"
)

// position is the start of a read, in GetShardIterator and SubscribeToShard.
type position struct {
	operation string // for messages
	kind      *string
	number    *string
	at        *timestamp
}

// validate checks that the members fit together. The texts are those of GetShardIterator; that
// SubscribeToShard has the same is a guess.
func (p position) validate(v *violations) {
	if p.kind == nil {
		return
	}
	switch kind := *p.kind; kind {
	case atSequenceNumber, afterSequenceNumber:
		if p.number == nil {
			v.fail(positionMembers(kind + " and no StartingSequenceNumber."))
		}
	case trimHorizon, latest:
		if p.number != nil {
			v.fail(positionMembers(kind + " and also a StartingSequenceNumber."))
		}
	case atTimestamp:
		if p.at == nil {
			v.fail(invalid("Must specify timestampInMillis parameter for iterator "+
				"of type %s. Current request has no timestamp parameter.", kind))
		}
		if p.number != nil {
			v.fail(positionMembers(kind + " and also a StartingSequenceNumber."))
		}
	}
}

func positionMembers(specified string) *wire.Error {
	return invalid("Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and "+
		"StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "+
		"Request specified %s", specified)
}

// resolve returns the index of the first record to read.
func (p position) resolve(
	ctx context.Context, st *catalogue.Stream, sh *catalogue.Shard, records *shardlog.Shard,
	now moment,
) (uint64, error) {
	oldest, next := records.Bounds()
	switch *p.kind {
	case trimHorizon:
		return oldest, nil
	case latest:
		return next, nil
	case atTimestamp:
		at := int64(*p.at)
		if at > now.Stamp {
			return 0, invalid("The timestampInMillis parameter cannot be greater than the "+
				"currentTimestampInMillis. timestampInMillis: %d, currentTimestampInMillis: %d",
				at, now.Stamp)
		}
		index, err := records.IndexAt(ctx, at)
		if err != nil {
			err = fmt.Errorf("%s on stream %s, %s: %w", p.operation, st.Name, sh.ID(), err)
			return 0, damaged(err, st, sh)
		}
		return index, nil
	}
	n, err := p.startingNumber(st, sh)
	if err != nil {
		return 0, err
	}
	if n.index == endIndex && !sh.IsOpen() {
		return next, nil // all there are: next is final, since the shard is closed
	}
	index, exact := records.IndexOf(n.index)
	switch {
	case !exact: // a power cut took the record: the first one after it
		return index, nil
	case index >= next:
		return 0, p.invalidNumber(st, sh, "is invalid.")
	case *p.kind == afterSequenceNumber, n.arrival == maxArrival:
		return index + 1, nil
	default:
		return index, nil
	}
}

// startingNumber parses the sequence number, which must belong to the shard.
func (p position) startingNumber(
	st *catalogue.Stream, sh *catalogue.Shard,
) (sequenceNumber, error) {
	n, err := parseNumber(*p.number)
	switch {
	case err != nil:
		return n, p.invalidNumber(st, sh, "is invalid.")
	case n.shard != sh.Index:
		return n, invalid("Invalid StartingSequenceNumber. It encodes %s, while it was used in a "+
			"call to a shard with %s", shardid.Of(n.shard), sh.ID())
	case n.version != numberVersion || n.created != sh.Created:
		return n, p.invalidNumber(st, sh, "is invalid because it did not come from this stream.")
	}
	return n, nil
}

func (p position) invalidNumber(st *catalogue.Stream, sh *catalogue.Shard, why string) error {
	return invalid("StartingSequenceNumber %s used in %s on shard %s in stream %s "+
		"under account %s %s", *p.number, p.operation, sh.ID(), st.Name, st.World.Account, why)
}
