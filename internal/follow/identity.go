package follow

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
)

var (
	// ErrShard is returned for a shard that the stream does not have.
	ErrShard = errors.New("no such shard; see runnel streams describe")
	// ErrRecreated is returned when the stream was deleted and created again while it was read.
	ErrRecreated = errors.New("the stream was deleted and created again while it was read; " +
		"nothing of the new one was taken for the old one: start again to read the new one")
)

// goneError is the error of a look at a stream that does not exist any more.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

// isLasting reports whether an error ends the reading of all shards.
func isLasting(err error) bool {
	var gone goneError
	return errors.Is(err, ErrRecreated) || errors.As(err, &gone)
}

func (r *run) describe(ctx context.Context) (*kinesis.DescribeStreamSummaryOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.cfg.Kinesis.DescribeStreamSummary(ctx, streamref.Describe(r.cfg.Stream))
}

func horizonOf(out *kinesis.DescribeStreamSummaryOutput) *shardmap.Horizon {
	summary := out.StreamDescriptionSummary
	if summary == nil {
		return &shardmap.Horizon{}
	}
	return &shardmap.Horizon{
		Created:   aws.ToTime(summary.StreamCreationTimestamp),
		Retention: time.Duration(aws.ToInt32(summary.RetentionPeriodHours)) * time.Hour,
	}
}

// look returns nil if the stream is still the one with which the reading began.
func (r *run) look(ctx context.Context) error {
	out, err := r.describe(ctx)
	if awserr.Kinesis.Of(err) == awserr.Missing {
		return goneError{err}
	}
	if err != nil {
		return err
	}
	now := horizonOf(out)
	if !now.Created.Equal(r.horizon.Load().Created) {
		return ErrRecreated
	}
	r.horizon.Store(now)
	return nil
}
