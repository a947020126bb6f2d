package producer

import (
	"errors"
	"net"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
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

var shardID = regexp.MustCompile(`\bshardId-[0-9]{1,100}\b`)

// shardIn returns the shard that the message of a refused record names, as AWS documents it
// ("PutRecords"), or "".
func shardIn(message string) runnel.ShardID {
	return runnel.ShardID(shardID.FindString(message))
}

// fateOfClass has the fate of a call's records for each class of error.
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

// fateOf decides what an error of a whole call says of its records.
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

// isFaulty reports whether the stream has refused a call because of what it carries.
func isFaulty(err error) bool { return awserr.Kinesis.Of(err) == awserr.Record }

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
