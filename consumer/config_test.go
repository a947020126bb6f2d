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
)

// Every fault is reported at once.
func TestValidate(t *testing.T) {
	_, err := New(Config{
		Failover: time.Millisecond, MaxRecords: 10_001, PollInterval: -1, MaxLeases: -1,
		From: runnel.FromSequence("49"), Static: true, Absence: 25 * time.Hour,
		HandOverTimeout: -1, ReadRate: math.NaN(),
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"Stream", "App", "Kinesis", "DynamoDB", "Handler", "Failover", "MaxRecords",
		"PollInterval", "MaxLeases", "From", "Static is set without a WorkerID", "Absence",
		"HandOverTimeout", "ReadRate is NaN",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in %v", want, err)
		}
	}
}

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
