package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// world knows the account and the region that the proxy's credentials work in, so that a stream
// which is put into by its name and by its ARN has one producer, and so one order.
type world struct {
	client *kinesis.Client
	// streams is what the ARNs of the world's streams begin with, as
	// "arn:aws:kinesis:us-east-1:123456789012:stream/"; nil until it was found out.
	streams atomic.Pointer[string]
}

// identify returns what stands for the stream: its name, or the ARN of a stream that is of
// another world.
//
// The first ARN costs a DescribeStreamSummary of its name, since nothing else tells which
// account the credentials are of without a permission more. The error is of that call.
func (w *world) identify(ctx context.Context, t *target) (string, error) {
	if t.StreamARN == nil {
		return *t.StreamName, nil
	}
	arn := *t.StreamARN
	_, name, _ := strings.Cut(arn, ":stream/")
	ours := w.streams.Load()
	if ours == nil {
		found, err := w.client.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: &name})
		var missing *types.ResourceNotFoundException
		switch {
		case errors.As(err, &missing):
			return arn, nil // of another world, or nowhere: asked again next time
		case err != nil:
			return "", fmt.Errorf("whether %s is of the proxy's own account must be known before "+
				"the first put by an ARN (use StreamName, or allow the proxy "+
				"kinesis:DescribeStreamSummary): %w", arn, err)
		}
		prefix := ""
		if summary := found.StreamDescriptionSummary; summary != nil {
			prefix, _, _ = strings.Cut(aws.ToString(summary.StreamARN), "/")
		}
		if prefix == "" {
			return "", fmt.Errorf("the answer to DescribeStreamSummary of %s has no ARN", name)
		}
		prefix += "/"
		ours = &prefix
		w.streams.Store(ours)
	}
	if strings.HasPrefix(arn, *ours) {
		return name, nil
	}
	return arn, nil
}
