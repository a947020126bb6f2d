package proxy

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// world knows the account and the region that the proxy's credentials work in, so that a stream
// which is put into by its name and by its ARN has one producer, and so one order.
type world struct {
	client *kinesis.Client
	home   atomic.Pointer[home] // nil until it was found out
}

// home is where a stream is that is named by its name alone.
type home struct{ region, account string }

// homeOf takes apart a stream's ARN, "arn:aws:kinesis:<region>:<account>:stream/<name>".
func homeOf(arn string) (at home, name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 {
		return home{}, "", false
	}
	name, ok = strings.CutPrefix(parts[5], "stream/")
	return home{parts[3], parts[4]}, name, ok
}

// identify returns what stands for the stream: its name, or the ARN of a stream that is of
// another world. The first ARN costs a call of DescribeStreamSummary, whose error it may return.
func (w *world) identify(ctx context.Context, t *target) (string, error) {
	if t.StreamARN == nil {
		return *t.StreamName, nil
	}
	at, name, ok := homeOf(*t.StreamARN)
	if !ok {
		return *t.StreamARN, nil
	}
	ours := w.home.Load()
	if ours == nil {
		var err error
		if ours, err = w.ask(ctx, name); err != nil {
			return "", fmt.Errorf("whether %s is of the proxy's own account must be known before "+
				"the first put by an ARN (use StreamName, or allow the proxy "+
				"kinesis:DescribeStreamSummary): %w", *t.StreamARN, err)
		}
		w.home.Store(ours)
	}
	if ours != nil && at == *ours {
		return name, nil
	}
	return *t.StreamARN, nil
}

// underAccount is how the service says where a stream is not.
var underAccount = regexp.MustCompile(` under account (\d{12})\b`)

// ask finds out the home by a stream of that name, be it there or not. Nothing else tells it
// without a further service. It is nil if the service does not say: it is asked again then.
func (w *world) ask(ctx context.Context, name string) (*home, error) {
	found, err := w.client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: &name})
	if awserr.Kinesis.Of(err) == awserr.Missing {
		if said := underAccount.FindStringSubmatch(awserr.Message(err)); said != nil {
			return &home{w.client.Options().Region, said[1]}, nil
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if summary := found.StreamDescriptionSummary; summary != nil {
		if at, _, ok := homeOf(aws.ToString(summary.StreamARN)); ok {
			return &at, nil
		}
	}
	return nil, nil
}
