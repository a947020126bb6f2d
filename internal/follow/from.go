package follow

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
)

// From is where the reading of a stream begins. The zero value is Oldest.
type From struct {
	word     runnel.SequenceNumber
	at       time.Time
	sequence runnel.SequenceNumber
}

const atSequence = "AT_SEQUENCE_NUMBER"

// Oldest begins at the oldest record that the stream still has, and Latest with the records that
// arrive from now on.
var (
	Oldest = From{}
	Latest = From{word: runnel.Latest}
)

// At begins with the first record that arrived at t or later.
func At(t time.Time) From { return From{word: runnel.AtTimestamp, at: t} }

// AtSequence begins with the record of that number; it is for one shard.
func AtSequence(n runnel.SequenceNumber) From { return From{word: atSequence, sequence: n} }

// IsSequence reports whether f is a sequence number.
func (f From) IsSequence() bool { return f.word == atSequence }

// ParseFrom reads "oldest", "latest", an RFC 3339 time or a sequence number.
func ParseFrom(text string) (From, error) {
	switch n := runnel.SequenceNumber(text); {
	case text == "oldest":
		return Oldest, nil
	case text == "latest":
		return Latest, nil
	case n.IsNumber():
		return AtSequence(n), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return From{}, fmt.Errorf("where to begin is oldest, latest, a time as "+
			"2026-01-31T08:00:00Z, or a sequence number, not %q", text)
	}
	return At(t), nil
}

// input asks for an iterator at f.
func (f From) input(stream string, shard runnel.ShardID) *kinesis.GetShardIteratorInput {
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(stream), ShardId: aws.String(string(shard)),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch f.word {
	case runnel.Latest:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	case runnel.AtTimestamp:
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(f.at)
	case atSequence:
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(f.sequence))
	}
	return in
}
