package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type maxRecordSizeInput struct {
	StreamARN          *string
	MaxRecordSizeInKiB *integer
}

// validate requires the ARN: the model allows a StreamId instead, which is reserved for future use.
// The text is a guess.
func (in *maxRecordSizeInput) validate(v *violations) {
	if in.StreamARN == nil {
		v.fail(invalid("StreamARN must be provided."))
	}
}

// updateMaxRecordSize changes the largest size of an ACTIVE stream's records from now on, in either
// direction. The stream is UPDATING for the stream delay (a guess: AWS does not say so, but names
// ResourceInUseException as it does for asynchronous operations).
func (s *Service) updateMaxRecordSize(
	ctx context.Context, world wire.World, in *maxRecordSizeInput,
) (any, error) {
	return nil, s.streams.changeSettings(ctx, world, &target{StreamARN: in.StreamARN}, true, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		if next.MaxRecord = int64(*in.MaxRecordSizeInKiB); next.MaxRecord == st.MaxRecord {
			return errUnchanged
		}
		return nil
	})
}
