package pages

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// CheckOwner returns an error if the position of a record is not one of the shard's. Only the
// stream can say that.
func CheckOwner(
	ctx context.Context, api KinesisAPI, stream string, shard runnel.ShardID, at runnel.Position,
) error {
	in := &kinesis.GetShardIteratorInput{
		ShardId:                aws.String(string(shard)),
		ShardIteratorType:      types.ShardIteratorTypeAfterSequenceNumber,
		StartingSequenceNumber: aws.String(string(at.Sequence)),
	}
	in.StreamName, in.StreamARN = streamref.Target(stream)
	_, err := api.GetShardIterator(ctx, in)
	if awserr.InvalidArgument(err) {
		return fmt.Errorf("the position %s is not one of this shard: %w", at, err)
	}
	return err
}
