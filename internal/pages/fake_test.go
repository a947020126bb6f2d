package pages

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// fake is a shard of a server with a clock of its own, and the Stream of its cursors.
type fake struct {
	skew    time.Duration // the server's clock minus ours
	records []types.Record
	closed  bool
	// atEndOnly says that the shard has ended in an answer without records, as AWS does.
	atEndOnly bool
	noDate    bool
	life      time.Duration // of an iterator; 0: for ever
	fault     func(op string) error

	calls   []string  // the operations, and the types of iterators
	trimmed int       // records that the stream removed
	last    time.Time // of the last GetRecords call
	limit   int32     // of its input
	horizon shardmap.Horizon
	shards  []runnel.Shard
	same    error
	lasting bool // same is
}

// Options makes the fake a client of this machine, for which there are no limits.
func (f *fake) Options() kinesis.Options {
	return kinesis.Options{BaseEndpoint: aws.String("http://127.0.0.1:4566")}
}

func (f *fake) now() time.Time { return time.Now().Add(f.skew) }

func (f *fake) put(n int) {
	for range n {
		f.records = append(f.records, types.Record{
			SequenceNumber:              aws.String(strconv.Itoa(100 + len(f.records))),
			ApproximateArrivalTimestamp: aws.Time(f.now()),
		})
	}
}

// call executes a call: it fails, or has its answer's metadata.
func (f *fake) call(op, detail string) (middleware.Metadata, error) {
	f.calls = append(f.calls, strings.TrimSpace(op+" "+detail))
	if f.fault != nil {
		if err := f.fault(op); err != nil {
			return middleware.Metadata{}, err
		}
	}
	if f.noDate {
		return middleware.Metadata{}, nil
	}
	return dated(f.now())
}

// dated makes the metadata of an answer with a Date header, as the SDK makes it.
func dated(date time.Time) (middleware.Metadata, error) {
	response := &smithyhttp.Response{Response: &http.Response{
		Header: http.Header{"Date": []string{date.UTC().Format(http.TimeFormat)}},
	}}
	_, metadata, err := (&awsmiddleware.RecordResponseTiming{}).HandleDeserialize(
		context.Background(), middleware.DeserializeInput{},
		middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (
			middleware.DeserializeOutput, middleware.Metadata, error,
		) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		}))
	return metadata, err
}

func (f *fake) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, _ ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	metadata, err := f.call("seek", string(in.ShardIteratorType))
	if err != nil {
		return nil, err
	}
	index := 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeLatest:
		index = len(f.records)
	case types.ShardIteratorTypeAtTimestamp:
		index = f.first(func(r *types.Record) bool {
			return !r.ApproximateArrivalTimestamp.Before(*in.Timestamp)
		})
	case types.ShardIteratorTypeAtSequenceNumber:
		index = f.first(func(r *types.Record) bool {
			return *r.SequenceNumber >= *in.StartingSequenceNumber
		})
	}
	return &kinesis.GetShardIteratorOutput{
		ShardIterator: f.iterator(index), ResultMetadata: metadata,
	}, ctx.Err()
}

// iterator makes an iterator: an index, and the time.
func (f *fake) iterator(index int) *string {
	return aws.String(fmt.Sprint(index, " ", time.Now().UnixNano()))
}

// first returns the index of the first record that fits.
func (f *fake) first(fits func(*types.Record) bool) int {
	for i := range f.records {
		if fits(&f.records[i]) {
			return i
		}
	}
	return len(f.records)
}

// GetRecords returns up to two records.
func (f *fake) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, _ ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	metadata, err := f.call("get", "")
	if err != nil {
		return nil, err
	}
	f.last, f.limit = time.Now(), *in.Limit
	var index int
	var made int64
	if _, err := fmt.Sscan(*in.ShardIterator, &index, &made); err != nil {
		return nil, err
	}
	if age := time.Since(time.Unix(0, made)); f.life > 0 && age > f.life {
		return nil, errExpired
	}
	index = max(index, f.trimmed)
	end := min(index+min(2, int(*in.Limit)), len(f.records))
	out := &kinesis.GetRecordsOutput{
		Records: slices.Clone(f.records[index:end]), ResultMetadata: metadata,
		MillisBehindLatest: aws.Int64(int64(1000 * (len(f.records) - end))),
	}
	if !f.closed || end < len(f.records) || f.atEndOnly && len(out.Records) > 0 {
		out.NextShardIterator = f.iterator(end)
	}
	return out, ctx.Err()
}

func (f *fake) Horizon() shardmap.Horizon                      { return f.horizon }
func (f *fake) Same(context.Context) error                     { return f.same }
func (f *fake) Shards(context.Context) ([]runnel.Shard, error) { return f.shards, nil }
func (f *fake) Lasting(err error) bool                         { return f.lasting && err == f.same }

// numbers returns the records of a page by their places in the shard.
func numbers(page Page) string {
	var places []string
	for i := range page.Records {
		n, _ := strconv.Atoi(*page.Records[i].SequenceNumber)
		places = append(places, fmt.Sprint(n-100))
	}
	return strings.Join(places, " ")
}
