package producer

import (
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel"
)

// classify decides what became of a call of n units. An InternalFailure among the results of
// records is a record that was not stored, as AWS says; one of the whole call is unknown.
//
// Whatever is not known for certain is unknown. That is also what the SDK's "StatusCode: 200
// … deserialization failed … use of closed network connection" is: it reports a batch that was
// stored as failed when the connection is cut while the answer is read.
func classify(output *kinesis.PutRecordsOutput, err error, n int, sent *sending) outcome {
	switch {
	case err != nil:
		return outcome{all: verdict{fate: fateOf(err, sent), err: err}}
	case output == nil || len(output.Records) != n:
		return outcome{all: verdict{fate: unknown, err: errors.New(
			"the answer does not have one result for each record")}}
	}
	each := make([]verdict, n)
	for i := range output.Records {
		each[i] = verdictOf(&output.Records[i])
	}
	return outcome{each: each}
}

func verdictOf(r *types.PutRecordsResultEntry) verdict {
	code := aws.ToString(r.ErrorCode)
	switch {
	case code != "":
		err := &RecordError{Code: code, Message: aws.ToString(r.ErrorMessage)}
		if throttles[code] {
			return verdict{fate: throttled, shard: shardIn(err.Message), err: err}
		}
		return verdict{fate: failed, err: err}
	case r.SequenceNumber == nil || r.ShardId == nil:
		return verdict{fate: unknown, err: errors.New(
			"the answer has neither a sequence number nor an error for the record")}
	}
	return verdict{
		fate: stored, shard: runnel.ShardID(*r.ShardId),
		sequence: runnel.SequenceNumber(*r.SequenceNumber),
	}
}

var shardID = regexp.MustCompile(`\bshardId-[0-9]{1,100}\b`)

// shardIn returns the shard that the message of a refused record names, as AWS documents it
// ("PutRecords"), or "".
func shardIn(message string) runnel.ShardID {
	return runnel.ShardID(shardID.FindString(message))
}

// fateOf decides what an error of a whole call says of its records.
func fateOf(err error, sent *sending) fate {
	if errors.Is(err, errTooLate) {
		return withheld
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		if f, known := fateOfCode(api.ErrorCode(), api.ErrorMessage()); known {
			return f
		}
	}
	if status := statusOf(err); status != 0 {
		switch status {
		case http.StatusTooManyRequests:
			return throttled
		case http.StatusRequestEntityTooLarge:
			return suspect
		}
		return unknown
	}
	if !sent.connected.Load() && (sent.asked.Load() || isDialError(err)) {
		return notSent
	}
	return unknown
}

// codeOf is the code of an answer, or "".
func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

func statusOf(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// isDialError tells errors of finding and reaching the endpoint, which come before anything is
// sent.
func isDialError(err error) bool {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation.Op == "dial"
	}
	var name *net.DNSError
	return errors.As(err, &name)
}

// The codes of the API's errors, by what they say of the records of the call. What is in none
// of the sets had an answer that nobody understands, and counts as unknown.
var (
	// throttles: over a limit; nothing was stored.
	throttles = set("ProvisionedThroughputExceededException", "LimitExceededException",
		"KMSThrottlingException", "ThrottlingException", "Throttling", "ThrottledException",
		"RequestLimitExceeded", "TooManyRequestsException", "SlowDown")
	// passing: refused before execution, for a reason that passes: a stream that is not
	// active yet, credentials that the SDK renews (see finalForCaller), a clock that it corrects.
	passing = set("ResourceInUseException", "ExpiredTokenException", "ExpiredToken",
		"RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture")
	// faulty: refused before execution because of one of the records.
	faulty = set("ValidationException", "InvalidArgumentException", "SerializationException")
	// final: refused before execution because of the caller (its keys, its rights, the stream's
	// name), whatever the records are. It would be refused again until that changes.
	final = set("ResourceNotFoundException", "AccessDeniedException", "AccessDenied",
		"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired",
		"UnknownOperationException", "DryRunOperationException", "KMSAccessDeniedException",
		"KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
		"KMSOptInRequired")
)

func set(codes ...string) map[string]bool {
	s := make(map[string]bool, len(codes))
	for _, code := range codes {
		s[code] = true
	}
	return s
}

func fateOfCode(code, message string) (f fate, known bool) {
	switch {
	case throttles[code]:
		return throttled, true
	case passing[code] || (code == "InvalidSignatureException" && isClockFault(message)):
		return failed, true
	case faulty[code]:
		return suspect, true
	case final[code]:
		return refused, true
	default:
		return unknown, false
	}
}

// isClockFault tells a signature that came too late (the process was stopped between signing
// and sending, or the clocks differ) from a wrong one.
func isClockFault(message string) bool {
	return strings.HasPrefix(message, "Signature expired") ||
		strings.HasPrefix(message, "Signature not yet current")
}
