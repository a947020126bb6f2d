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
	"github.com/runnel-stream/runnel/internal/streamref"
)

var errCallTimeout = errors.New("the call had no answer within its time-out")

// put makes one call and lands it.
func (p *Producer) put(made *call) {
	p.seal(made)
	started, sentAt := time.Now(), p.clock.lately()
	var sent sending
	ctx, cancel := context.WithTimeoutCause(p.life, p.cfg.CallTimeout, errCallTimeout)
	output, err := p.send(sent.trace(ctx), made)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	cancel()
	p.see(sentAt, metadataOf(output), err)
	o := p.finalForCaller(p.life, classify(output, err, len(made.parcels), &sent))
	p.chartAnswer(o)
	if p.cfg.OnCall == nil {
		p.land(made, o)
		return
	}
	report := o.report(made)
	p.land(made, o)
	report.Took = time.Since(started)
	p.cfg.OnCall(report)
}

// seal encodes the call's units, unless it has done so before.
func (p *Producer) seal(made *call) {
	if made.sealed {
		return
	}
	s := p.sealers.Get().(*sealer)
	made.seal(p.packing, s)
	p.sealers.Put(s)
}

// send makes the call. It returns the answer of a PutRecord in the form of a PutRecords answer.
func (p *Producer) send(ctx context.Context, made *call) (*kinesis.PutRecordsOutput, error) {
	if p.cfg.Order != OrderChained {
		inTime := notAfter(made.until, p.clock.now)
		return p.puts.PutRecords(ctx, p.input(made), ownCall, inTime)
	}
	output, err := p.cfg.Kinesis.PutRecord(ctx, p.single(made), ownCall)
	if err != nil || output == nil {
		return nil, err
	}
	return &kinesis.PutRecordsOutput{Records: []types.PutRecordsResultEntry{{
		ShardId: output.ShardId, SequenceNumber: output.SequenceNumber,
	}}, ResultMetadata: output.ResultMetadata}, nil
}

// ownCall sets the options of one call, whatever options the client was made with. It switches the
// SDK's retries off, and prevents bodies that make the SDK report a stored batch as failed.
func ownCall(o *kinesis.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.PlainBodies(o.HTTPClient)
}

func (p *Producer) input(made *call) *kinesis.PutRecordsInput {
	input := &kinesis.PutRecordsInput{
		Records: make([]types.PutRecordsRequestEntry, len(made.parcels)),
	}
	input.StreamName, input.StreamARN = p.target()
	for i := range made.parcels {
		p, r := &made.parcels[i], &input.Records[i]
		if r.PartitionKey, r.Data = &p.key.partition, p.data; p.key.hash != "" {
			r.ExplicitHashKey = &p.key.hash
		}
	}
	return input
}

// single returns the input of a PutRecord call in OrderChained.
func (p *Producer) single(made *call) *kinesis.PutRecordInput {
	only := &made.parcels[0]
	input := &kinesis.PutRecordInput{PartitionKey: &only.key.partition, Data: only.data}
	input.StreamName, input.StreamARN = p.target()
	if only.key.hash != "" {
		input.ExplicitHashKey = &only.key.hash
	}
	if made.after != "" {
		input.SequenceNumberForOrdering = aws.String(string(made.after))
	}
	return input
}

// target returns the stream's name or its ARN; the other one is nil.
func (p *Producer) target() (name, arn *string) {
	return streamref.Target(p.cfg.Stream)
}

// bytes returns the unit's data. It is never nil, which the SDK would take for a missing member.
func (u *unit) bytes() []byte {
	if u.data == nil {
		return []byte{}
	}
	return u.data
}

// sending records how far net/http got with a call.
type sending struct {
	asked, connected atomic.Bool
}

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	})
}
