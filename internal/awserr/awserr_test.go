package awserr_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// answer is an error of the SDK for an answer with a status, and a code unless that is "".
func answer(status int, code, message string) error {
	err := errors.New("not an error of the API's model")
	if code != "" {
		err = &smithy.GenericAPIError{Code: code, Message: message}
	}
	return &smithy.OperationError{
		ServiceID: "Kinesis", OperationName: "PutRecords",
		Err: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
		},
	}
}

func TestOf(t *testing.T) {
	const (
		kinesis = iota
		dynamo
		both
	)
	for _, c := range []struct {
		code      string
		status    int
		of        int
		want      awserr.Class
		transient bool
	}{
		{"ProvisionedThroughputExceededException", 400, both, awserr.Throttled, true},
		{"LimitExceededException", 400, both, awserr.Throttled, true},
		{"KMSThrottlingException", 400, kinesis, awserr.Throttled, true},
		{"RequestLimitExceeded", 400, both, awserr.Throttled, true},
		{"ThrottlingException", 400, both, awserr.Throttled, true},
		{"SlowDown", 503, both, awserr.Throttled, true},
		{"", 429, both, awserr.Throttled, true},
		{"ResourceInUseException", 400, both, awserr.Passing, true},
		{"TransactionConflictException", 400, dynamo, awserr.Passing, true},
		{"RequestTimeTooSkewed", 403, both, awserr.Passing, true},
		{"ExpiredTokenException", 400, both, awserr.Expired, false},
		{"AccessDeniedException", 400, both, awserr.Caller, false},
		{"UnrecognizedClientException", 400, both, awserr.Caller, false},
		{"InvalidSignatureException", 403, both, awserr.Caller, false},
		{"KMSDisabledException", 400, kinesis, awserr.Caller, false},
		{"ValidationException", 400, both, awserr.Record, false},
		{"InvalidArgumentException", 400, kinesis, awserr.Record, false},
		{"", 413, both, awserr.Record, false},
		{"ValidationError", 400, both, awserr.Record, false},
		{"MalformedHttpRequestException", 400, both, awserr.Record, false},
		{"RequestEntityTooLargeException", 413, both, awserr.Record, false},
		{"ConditionalCheckFailedException", 400, dynamo, awserr.Record, false},
		{"ResourceNotFoundException", 400, both, awserr.Missing, false},
		{"ExpiredIteratorException", 400, kinesis, awserr.Gone, false},
		{"InternalFailure", 500, both, awserr.Unknown, true},
		{"ServiceUnavailable", 503, both, awserr.Unknown, true},
		{"", 502, both, awserr.Unknown, true},
		{"RequestTimeout", 408, both, awserr.Unknown, true},
		{"SomethingNew", 400, both, awserr.Unknown, false},
		{"KMSDisabledException", 400, dynamo, awserr.Unknown, false},
		{"TransactionConflictException", 400, kinesis, awserr.Unknown, false},
	} {
		err := answer(c.status, c.code, "why")
		for of, service := range []awserr.Service{awserr.Kinesis, awserr.DynamoDB} {
			if c.of != both && c.of != of {
				continue
			}
			if got := service.Of(err); got != c.want {
				t.Errorf("%s %d: %v, want %v", c.code, c.status, got, c.want)
			}
			if got := service.Transient(err); got != c.transient {
				t.Errorf("%s %d: transient is %v, want %v", c.code, c.status, got, c.transient)
			}
			if got := service.Of(err).NotExecuted(); got != (c.want != awserr.Unknown) {
				t.Errorf("%s %d: not executed is %v", c.code, c.status, got)
			}
		}
		if c.code != "" && (awserr.Code(err) != c.code || awserr.Message(err) != "why" ||
			awserr.Status(err) != c.status) {
			t.Errorf("%s %d: %q, %q, %d", c.code, c.status, awserr.Code(err), awserr.Message(err),
				awserr.Status(err))
		}
	}
}

// An error without an answer leaves the outcome unknown, and another attempt may succeed.
func TestNoAnswer(t *testing.T) {
	for _, err := range []error{
		&net.OpError{Op: "dial", Err: errors.New("connection refused")},
		context.DeadlineExceeded, errors.New("connection reset"),
		fmt.Errorf("put: %w", &net.DNSError{}),
	} {
		if class := awserr.Kinesis.Of(err); class != awserr.Unknown || !awserr.Kinesis.Transient(err) {
			t.Errorf("%v: %v, transient %v", err, class, awserr.Kinesis.Transient(err))
		}
		if awserr.Code(err) != "" || awserr.Message(err) != "" || awserr.Status(err) != 0 {
			t.Errorf("%v has a code or a status", err)
		}
	}
}

// A signature that came too late is not a wrong one.
func TestClockFault(t *testing.T) {
	for message, want := range map[string]awserr.Class{
		"Signature expired: 20261123T000000Z is now earlier than …":  awserr.Passing,
		"Signature not yet current: 20261123T000000Z is still later": awserr.Passing,
		"The request signature we calculated does not match":         awserr.Caller,
		"": awserr.Caller,
	} {
		if got := awserr.Kinesis.Of(answer(403, "InvalidSignatureException", message)); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}

// The SDK's own types have codes too.
func TestModelledErrors(t *testing.T) {
	for want, errs := range map[awserr.Class][]error{
		awserr.Throttled: {
			&kinesistypes.ProvisionedThroughputExceededException{},
			&kinesistypes.LimitExceededException{}, &kinesistypes.KMSThrottlingException{},
		},
		awserr.Passing: {&kinesistypes.ResourceInUseException{}},
		awserr.Caller: {
			&kinesistypes.AccessDeniedException{}, &kinesistypes.KMSAccessDeniedException{},
			&kinesistypes.KMSDisabledException{}, &kinesistypes.KMSInvalidStateException{},
			&kinesistypes.KMSNotFoundException{}, &kinesistypes.KMSOptInRequired{},
		},
		awserr.Record:  {&kinesistypes.InvalidArgumentException{}, &kinesistypes.ValidationException{}},
		awserr.Missing: {&kinesistypes.ResourceNotFoundException{}},
		awserr.Gone: {
			&kinesistypes.ExpiredIteratorException{},
			&kinesistypes.ExpiredNextTokenException{},
		},
		awserr.Unknown: {&kinesistypes.InternalFailureException{}},
	} {
		for _, err := range errs {
			if got := awserr.Kinesis.Of(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("%v: %v, want %v", err, got, want)
			}
		}
	}
}

func TestS3(t *testing.T) {
	for _, c := range []struct {
		code      string
		status    int
		want      awserr.Class
		transient bool
	}{
		{"ConditionalRequestConflict", 409, awserr.Passing, true},
		{"RequestTimeout", 400, awserr.Passing, true},
		{"SlowDown", 503, awserr.Throttled, true},
		{"IncompleteBody", 400, awserr.Passing, true},
		{"BadDigest", 400, awserr.Passing, true},
		{"NotImplemented", 501, awserr.Caller, false},
		{"PreconditionFailed", 412, awserr.Record, false},
		{"NoSuchKey", 404, awserr.Missing, false},
		{"NoSuchBucket", 404, awserr.Missing, false},
		{"InvalidAccessKeyId", 403, awserr.Caller, false},
		{"InvalidArgument", 400, awserr.Unknown, false},
		{"InternalError", 500, awserr.Unknown, true},
	} {
		err := answer(c.status, c.code, "why")
		if got := awserr.S3.Of(err); got != c.want || awserr.S3.Transient(err) != c.transient {
			t.Errorf("%s %d: %v, want %v", c.code, c.status, got, c.want)
		}
	}
}

// A signature that has expired is no fault of the key: the clocks differ.
func TestIsKeyFault(t *testing.T) {
	for _, c := range []struct {
		code, message string
		want          bool
	}{
		{"UnrecognizedClientException", "The security token is invalid.", true},
		{"InvalidSignatureException", "The signature does not match.", true},
		{"InvalidSignatureException", "Signature expired: 2026 is now earlier", false},
		{"InvalidSignatureException", "Signature not yet current: 2026", false},
		{"AccessDeniedException", "", false},
	} {
		err := fmt.Errorf("call: %w", &smithy.GenericAPIError{Code: c.code, Message: c.message})
		if got := awserr.IsKeyFault(err); got != c.want {
			t.Errorf("%s, %s: %v", c.code, c.message, got)
		}
	}
}
