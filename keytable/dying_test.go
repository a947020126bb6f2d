package keytable

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// dying is the clients of a process that dies at its n-th call: before the call is sent, or when
// it was executed and before its answer is there.
type dying struct {
	*dynamodb.Client
	kinesis *kinesis.Client
	after   bool
	die     context.CancelFunc

	mu    sync.Mutex
	lives int // calls that are left
}

var errDead = errors.New("the process is dead")

func through[I, O, F any](
	ctx context.Context, d *dying, in I, options []F,
	call func(context.Context, I, ...F) (O, error),
) (O, error) {
	d.mu.Lock()
	d.lives--
	last, dead := d.lives == 0, d.lives < 0
	d.mu.Unlock()
	var none O
	if dead || last && !d.after {
		d.die()
		return none, errDead
	}
	out, err := call(ctx, in, options...)
	if last {
		d.die()
		return none, errDead
	}
	return out, err
}

func (d *dying) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return through(ctx, d, in, o, d.Client.DescribeTable)
}

func (d *dying) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(ctx, d, in, o, d.Client.PutItem)
}

func (d *dying) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, d, in, o, d.Client.GetItem)
}

func (d *dying) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return through(ctx, d, in, o, d.Client.DeleteItem)
}

func (d *dying) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return through(ctx, d, in, o, d.Client.Scan)
}

func (d *dying) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, d, in, o, d.Client.Query)
}

func (d *dying) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, d, in, o, d.Client.TransactWriteItems)
}

// dyingStream is the same process's client of Kinesis.
type dyingStream struct{ *dying }

func (d dyingStream) DescribeStreamSummary(ctx context.Context, in *kinesis.DescribeStreamSummaryInput, o ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	return through(ctx, d.dying, in, o, d.kinesis.DescribeStreamSummary)
}

func (d dyingStream) ListShards(ctx context.Context, in *kinesis.ListShardsInput, o ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error) {
	return through(ctx, d.dying, in, o, d.kinesis.ListShards)
}

func (d dyingStream) PutRecords(ctx context.Context, in *kinesis.PutRecordsInput, o ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error) {
	return through(ctx, d.dying, in, o, d.kinesis.PutRecords)
}

func (d dyingStream) GetShardIterator(ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error) {
	return through(ctx, d.dying, in, o, d.kinesis.GetShardIterator)
}

func (d dyingStream) GetRecords(ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options)) (*kinesis.GetRecordsOutput, error) {
	return through(ctx, d.dying, in, o, d.kinesis.GetRecords)
}
