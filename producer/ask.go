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

// askTime asks the stream for its time because the core needs it. It uses ListShards, since that is
// the Reader's call with the highest limit: 1,000 a second for each stream.
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

// isAnswer reports whether an error is an answer of the endpoint.
func isAnswer(err error) bool {
	return awserr.Code(err) != "" || awserr.Status(err) != 0
}

// see passes the Date of an answer to the core. sent is when the call was sent. An error without a
// Date is ignored.
func (p *Producer) see(sent time.Time, metadata middleware.Metadata, err error) {
	date := dateOf(metadata, err)
	if date.IsZero() && err != nil {
		return
	}
	p.mu.Lock()
	p.mu.core.dates.saw(sent, date)
	p.mu.Unlock()
}

// dateOf returns the Date of an answer, or the zero time. It ignores errors without a request id,
// such as the 502 of a load balancer in between, because their Date is from another clock.
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

// metadataOf returns the SDK's metadata of an answer, which contain its Date.
func metadataOf(output *kinesis.PutRecordsOutput) (metadata middleware.Metadata) {
	if output != nil {
		metadata = output.ResultMetadata
	}
	return metadata
}
