package producer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// askTime asks the stream for its time, because the core wants it. ListShards is the call of a
// Reader that AWS allows most often: 1,000 times a second for each stream.
func (p *Producer) askTime() {
	ctx, cancel := context.WithTimeoutCause(p.life, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	input := &kinesis.ListShardsInput{MaxResults: aws.Int32(1)}
	input.StreamName, input.StreamARN = p.target()
	output, err := p.cfg.Reader.ListShards(ctx, input, func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
	})
	var metadata middleware.Metadata
	if output != nil {
		metadata = output.ResultMetadata
	}
	date := dateOf(metadata, err)
	answered := err == nil || isAnswer(err)
	p.landing(err, func(c *core, now time.Time) { c.landAsk(now, date, answered) })
}

// isAnswer reports whether an error says that the endpoint is there.
func isAnswer(err error) bool {
	return awserr.Code(err) != "" || awserr.Status(err) != 0
}

// see gives the core the Date of the answer to a call that was sent at a moment. An error without
// an answer has none and is left out.
func (p *Producer) see(sent time.Time, metadata middleware.Metadata, err error) {
	date := dateOf(metadata, err)
	if date.IsZero() && err != nil {
		return
	}
	p.mu.Lock()
	p.mu.core.dates.saw(sent, date)
	p.mu.Unlock()
}

// dateOf returns the Date of an answer, or the zero time. The answers of a load balancer in
// between, as its 502, have the time of another clock and do not count.
func dateOf(metadata middleware.Metadata, err error) time.Time {
	if err == nil {
		date, _ := awsmiddleware.GetServerTime(metadata)
		return date
	}
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil ||
		response.Response.Header.Get("X-Amzn-Requestid") == "" {
		return time.Time{}
	}
	date, _ := http.ParseTime(response.Response.Header.Get("Date"))
	return date
}

// metadataOf returns the SDK's metadata of an answer, which have its Date.
func metadataOf(output *kinesis.PutRecordsOutput) (metadata middleware.Metadata) {
	if output != nil {
		metadata = output.ResultMetadata
	}
	return metadata
}
