package proxy

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
)

// world finds the account and the region of the proxy's credentials. Requests name a stream by its
// name or by its ARN, and both must lead to the same producer, since a second producer would have
// an order of its own.
type world struct {
	client *kinesis.Client
	home   atomic.Pointer[wire.World] // nil: not known yet
}

// splitARN splits a stream's ARN, "arn:aws:kinesis:<region>:<account>:stream/<name>".
func splitARN(arn string) (at wire.World, name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 {
		return wire.World{}, "", false
	}
	name, ok = strings.CutPrefix(parts[5], "stream/")
	return wire.World{Region: parts[3], Account: parts[4]}, name, ok
}

// identify returns the key of the stream's producer: the stream's name, or the ARN of a stream in
// another account or region. The first ARN costs a call of DescribeStreamSummary, and
// identify may return its error.
func (w *world) identify(ctx context.Context, r *wire.StreamRef) (string, error) {
	if r.StreamARN == nil {
		return *r.StreamName, nil
	}
	at, name, ok := splitARN(*r.StreamARN)
	if !ok {
		return *r.StreamARN, nil
	}
	home := w.home.Load()
	if home == nil {
		var err error
		if home, err = w.find(ctx, name); err != nil {
			return "", fmt.Errorf("the first put by an ARN needs the account of the proxy's "+
				"credentials, to compare it with %s (use StreamName, or allow the proxy "+
				"kinesis:DescribeStreamSummary): %w", *r.StreamARN, err)
		}
		w.home.Store(home)
	}
	if home != nil && at == *home {
		return name, nil
	}
	return *r.StreamARN, nil
}

// underAccount matches the account in the message "Stream … under account … not found."
var underAccount = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` under account (\d{12})\b`)
})

// find asks for a stream of that name. Both the description of a stream and the error for a missing
// one name the account, and no other operation of the API does. The result is nil if the answer
// names no account; the next ARN leads to another call then.
func (w *world) find(ctx context.Context, name string) (*wire.World, error) {
	found, err := w.client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: &name})
	if awserr.Kinesis.Of(err) == awserr.Missing {
		if account := underAccount().FindStringSubmatch(awserr.Message(err)); account != nil {
			return &wire.World{Region: w.client.Options().Region, Account: account[1]}, nil
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if summary := found.StreamDescriptionSummary; summary != nil {
		if at, _, ok := splitARN(aws.ToString(summary.StreamARN)); ok {
			return &at, nil
		}
	}
	return nil, nil
}
