package producer

import (
	"errors"
	"net"
	"regexp"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
)

// classify returns the outcome of a call of n Kinesis records. As AWS documents, a result with
// InternalFailure in an answer means that this record was not stored. As the error of a whole call,
// it is unknown.
//
// An outcome is unknown unless it is certain. For example, if the connection is cut while the
// answer is read, the SDK reports "StatusCode: 200 … deserialization failed … use of closed network
// connection", although the batch was stored.
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
		if class, _ := awserr.Kinesis.OfCode(code, err.Message); class == awserr.Throttled {
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

var shardID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bshardId-[0-9]{1,100}\b`)
})

// shardIn returns the shard that is named in the message of a refused record, as AWS documents it
// ("PutRecords"), or "".
func shardIn(message string) runnel.ShardID {
	return runnel.ShardID(shardID().FindString(message))
}

// fateOfClass maps each class of error to the fate of the call's records.
var fateOfClass = map[awserr.Class]fate{
	awserr.Throttled: throttled,
	awserr.Passing:   failed,
	awserr.Expired:   failed, // the SDK renews most tokens; see finalForCaller
	awserr.Caller:    refused,
	awserr.Missing:   refused,
	awserr.Record:    suspect,
	awserr.Gone:      unknown, // of reads alone
	awserr.Unknown:   unknown,
}

// fateOf returns the fate of the records of a call that failed as a whole.
func fateOf(err error, sent *sending) fate {
	if errors.Is(err, errTooLate) {
		return withheld
	}
	f := fateOfClass[awserr.Kinesis.Of(err)]
	if f == unknown && !isAnswer(err) && !sent.connected.Load() &&
		(sent.asked.Load() || isDialError(err)) {
		return notSent
	}
	return f
}

// isInvalid reports whether the stream has refused a call because its content is invalid.
func isInvalid(err error) bool { return awserr.Kinesis.Of(err) == awserr.Record }

// isDialError reports whether the endpoint could not be found or reached, so that nothing was sent.
func isDialError(err error) bool {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return operation.Op == "dial"
	}
	var name *net.DNSError
	return errors.As(err, &name)
}
