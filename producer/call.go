package producer

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

var errCallTimeout = errors.New("the call had no answer within its time-out")

// put makes one call and lands it.
func (p *Producer) put(made *call) {
	started := time.Now()
	var sent sending
	ctx, cancel := context.WithTimeoutCause(p.life, p.cfg.CallTimeout, errCallTimeout)
	output, err := p.cfg.Client.PutRecords(sent.trace(ctx), p.input(made), ownCall)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	cancel()
	o := classify(output, err, len(made.entries), &sent)
	p.land(made, o)
	if p.cfg.OnCall != nil {
		report := o.report(len(made.entries))
		report.Bytes, report.Took = made.bytes, time.Since(started)
		p.cfg.OnCall(report)
	}
}

// ownCall makes one call the producer's, whatever the client was made with: the SDK's retries
// are off, and its bodies are such that a stored batch is not reported as failed.
func ownCall(o *kinesis.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.PlainBodies(o.HTTPClient)
}

func (p *Producer) input(made *call) *kinesis.PutRecordsInput {
	input := &kinesis.PutRecordsInput{
		Records: make([]types.PutRecordsRequestEntry, len(made.entries)),
	}
	if isARN(p.cfg.Stream) {
		input.StreamARN = &p.cfg.Stream
	} else {
		input.StreamName = &p.cfg.Stream
	}
	for i, e := range made.entries {
		r := &input.Records[i]
		r.PartitionKey = &e.record.PartitionKey
		if r.Data = e.record.Data; r.Data == nil {
			r.Data = []byte{} // the SDK takes nil for a member that was forgotten
		}
		if e.record.ExplicitHashKey != "" {
			r.ExplicitHashKey = &e.record.ExplicitHashKey
		}
	}
	return input
}

// sending watches how far net/http got with a call.
type sending struct {
	asked, connected atomic.Bool
}

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
}
