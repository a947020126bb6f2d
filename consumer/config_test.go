package consumer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// Every fault is reported at once.
func TestValidate(t *testing.T) {
	_, err := New(Config{
		Failover: time.Millisecond, MaxRecords: 10_001, PollInterval: -1, MaxLeases: -1,
		From: runnel.FromSequence("49"), Static: true, Absence: 25 * time.Hour,
		HandOverTimeout: -1, ReadRate: math.NaN(),
	})
	_, long := New(Config{WorkerID: strings.Repeat("w", 1025)})
	err = errors.Join(err, long)
	if err == nil || long == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"Stream", "App", "Kinesis", "DynamoDB", "Handler", "Failover", "MaxRecords",
		"PollInterval", "MaxLeases", "From", "Static is set without a WorkerID", "Absence",
		"HandOverTimeout", "ReadRate is NaN", "WorkerID has 1025 bytes",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in %v", want, err)
		}
	}
}

// Each contradiction of handlers and policies is refused in a sentence of its own.
func TestValidateHandlers(t *testing.T) {
	handler := func(context.Context, *Batch) error { return nil }
	record := func(context.Context, *runnel.Record) error { return nil }
	processor := func(context.Context, Shard) (Processor, error) { return nil, nil }
	dead := func(context.Context, Failure) error { return nil }
	policy := func(p ErrorPolicy) Config { return Config{Handler: handler, OnError: p} }
	for want, c := range map[string]Config{
		"Handler is missing":         {},
		"Handler and Record are set": {Handler: handler, Record: record},
		"Record and NewProcessor and Sink are set": {
			Record: record, NewProcessor: processor, Sink: noSink{},
		},
		"Parallel is set without Record":    {Handler: handler, Parallel: 2},
		"Parallel is -1":                    {Record: record, Parallel: -1},
		"OnError is set with Sink":          {Sink: noSink{}, OnError: ErrorPolicy{Backoff: 1}},
		"ThenSkip without OnError.Attempts": policy(ErrorPolicy{Then: ThenSkip}),
		"DeadLetter is set without OnError.Attempts": policy(ErrorPolicy{
			Then: ThenSkip, DeadLetter: dead,
		}),
		"DeadLetter is set with ThenStop": policy(ErrorPolicy{Attempts: 1, DeadLetter: dead}),
		"OnError.Attempts is -1":          policy(ErrorPolicy{Attempts: -1}),
		"OnError.Backoff is -1ns":         policy(ErrorPolicy{Backoff: -1}),
		"OnError.Then is 7":               policy(ErrorPolicy{Then: 7}),
		`WorkerID is "w\n1"`:              {WorkerID: "w\n1"},
		`WorkerID is "w\x7f"`:             {WorkerID: "w\x7f"},
		`WorkerID is "w\xff"`:             {WorkerID: "w\xff"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
}

// noSink is a sink that is never opened.
type noSink struct{ sink.Sink }

func TestTransient(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), true},
		{context.DeadlineExceeded, true},
		{&types.LimitExceededException{}, true},
		{&ddb.ProvisionedThroughputExceededException{}, true},
		{&ddb.InternalServerError{}, true},
		{&types.InvalidArgumentException{}, false},
		{&types.ResourceNotFoundException{}, false},
		{fmt.Errorf("claim: %w", &lease.StreamError{}), false},
		{lease.ErrManagedByKCL3, false},
	} {
		if got := transient(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
