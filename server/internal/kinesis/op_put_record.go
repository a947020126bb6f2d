package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

type putRecordInput struct {
	wire.PutRecordInput

	hash   keyspace.Key
	origin *wire.Origin
}

func (in *putRecordInput) target() *target { return (*target)(&in.StreamRef) }

// name implements named.
func (in *putRecordInput) name(world wire.World) (string, error) { return in.target().name(world) }

// cameBy is part of dated.
func (in *putRecordInput) cameBy(o *wire.Origin) { in.origin = o }

func (in *putRecordInput) validate(v *violations) {
	in.hash = route(&in.PutEntry, v)
	in.target().validate(v)
}

// putRecord stores one record. SequenceNumberForOrdering is only checked: the numbers of a key
// always grow, also over reshards.
func (s *Service) putRecord(
	ctx context.Context, world wire.World, in *putRecordInput,
) (any, error) {
	if err := s.checkOrdering(world, in); err != nil {
		return nil, err
	}
	var results [1]putResult
	err := s.writer.put(ctx, world, putRequest{
		target: in.target(), origin: in.origin,
		entries: []wire.PutEntry{in.PutEntry}, hashes: []keyspace.Key{in.hash},
		results: results[:], member: func(int) string { return "" },
	})
	if err != nil {
		return nil, err
	}
	if code := results[0].code; code != "" {
		return nil, fail(code, "%s", results[0].message)
	}
	return &putRecordOutput{result: results[0]}, nil
}

func (s *Service) checkOrdering(world wire.World, in *putRecordInput) error {
	if in.SequenceNumberForOrdering == nil {
		return nil
	}
	n, err := parseNumber(*in.SequenceNumberForOrdering)
	if err == nil && n.arrival <= s.streams.clock.read().Stamp/1000 {
		return nil
	}
	name, err := in.name(world)
	if err != nil {
		return err
	}
	return invalid("ExclusiveMinimumSequenceNumber %s used in PutRecord on stream %s under "+
		"account %s is invalid.", *in.SequenceNumberForOrdering, name, world.Account)
}
