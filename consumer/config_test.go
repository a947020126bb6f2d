package consumer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/lease"
)

// Every fault is reported at once.
func TestValidate(t *testing.T) {
	_, err := New(Config{
		Failover: time.Millisecond, MaxRecords: 10_001, PollInterval: -1, MaxLeases: -1,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"Stream", "App", "Kinesis", "DynamoDB", "Handler", "Failover", "MaxRecords",
		"PollInterval", "MaxLeases",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in %v", want, err)
		}
	}
}

func TestParseFrom(t *testing.T) {
	for _, text := range []string{"oldest", "latest", "2026-01-31T08:00:00Z"} {
		if f, err := ParseFrom(text); err != nil || f.String() != text {
			t.Errorf("%s: %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "newest", "2026-01-31"} {
		if _, err := ParseFrom(text); err == nil {
			t.Errorf("%q was accepted", text)
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

// The stream's clock is bounded by the Date header where it contradicts ours.
func TestStreamTime(t *testing.T) {
	base := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name                string
		sent, got           int
		date                int
		none                bool
		earliest, latestEnd int
	}{
		{name: "no header", sent: 100, got: 120, none: true, earliest: 100, latestEnd: 120},
		{name: "clocks agree", sent: 100, got: 120, date: 0, earliest: 100, latestEnd: 1000},
		{name: "a second begins", sent: 990, got: 1010, date: 1000, earliest: 990, latestEnd: 2000},
		{name: "ours is ahead", sent: 5000, got: 5020, date: 0, earliest: 0, latestEnd: 5020},
		{name: "ours is behind", sent: 100, got: 120, date: 5000, earliest: 5000, latestEnd: 6000},
	} {
		answer := middleware.Metadata{}
		if !c.none {
			answer = withServerTime(t, at(c.date))
		}
		earliest, latest := streamTime(at(c.sent), at(c.got), answer)
		if !earliest.Equal(at(c.earliest)) || !latest.Equal(at(c.latestEnd)) {
			t.Errorf("%s: %s to %s", c.name, earliest, latest)
		}
	}
}

// withServerTime makes the metadata of an answer with a Date header, as the SDK makes it.
func withServerTime(t *testing.T, date time.Time) middleware.Metadata {
	t.Helper()
	record := awsmiddleware.RecordResponseTiming{}
	_, metadata, err := record.HandleDeserialize(t.Context(), middleware.DeserializeInput{},
		middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (
			out middleware.DeserializeOutput, md middleware.Metadata, err error,
		) {
			out.RawResponse = responseAt(date)
			return out, md, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return metadata
}

func responseAt(date time.Time) *smithyhttp.Response {
	return &smithyhttp.Response{Response: &http.Response{
		Header: http.Header{"Date": []string{date.Format(http.TimeFormat)}},
	}}
}
