package consumer_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// fakeStream is a stream in memory with the Kinesis calls that the consumer makes, and faults at
// will.
type fakeStream struct {
	loopback

	name    string
	created time.Time

	// fault, if not nil, may fail a call instead of executing it.
	fault func(op string, shard runnel.ShardID) error
	// atEndOnly returns ChildShards with an empty last page, as AWS does, and otherwise with
	// the last records, as others do.
	atEndOnly bool
	noFilter  bool          // ListShards ignores its filter, as some emulators do
	ahead     time.Duration // of the server's clock
	dated     bool          // its answers have a Date
	noBehind  bool          // GetRecords says that nothing follows, as some do always

	mu       sync.Mutex
	shards   []*fakeShard
	sequence int64
	gone     bool
}

type fakeShard struct {
	id             runnel.ShardID
	parents        []runnel.ShardID
	keys           keyspace.Range
	records        []types.Record
	opened, closed time.Time
	unlisted       bool
	trimmed        int
}

func newStream(shards int) *fakeStream {
	s := &fakeStream{
		name: "orders", created: time.UnixMilli(time.Now().UnixMilli()),
		sequence: 49_000_000_000, atEndOnly: true,
	}
	for _, r := range keyspace.Uniform(shards) {
		s.add(r)
	}
	return s
}

func (s *fakeStream) add(r keyspace.Range, parents ...runnel.ShardID) *fakeShard {
	sh := &fakeShard{
		id:      runnel.ShardID(fmt.Sprintf("shardId-%012d", len(s.shards))),
		parents: parents, keys: r, opened: time.Now(),
	}
	s.shards = append(s.shards, sh)
	return sh
}

// put appends records with the keys and returns their shards.
func (s *fakeStream) put(data string, keys ...string) []runnel.ShardID {
	var ids []runnel.ShardID
	for _, key := range keys {
		ids = append(ids, s.putAt(data, key, keyspace.Of(key))...)
	}
	return ids
}

// putAt appends a record with the key to the shard of a hash key.
func (s *fakeStream) putAt(data, key string, hash keyspace.Key) []runnel.ShardID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []runnel.ShardID
	for _, sh := range s.shards {
		if !sh.closed.IsZero() || !sh.keys.Contains(hash) {
			continue
		}
		s.sequence++
		sh.records = append(sh.records, types.Record{
			PartitionKey: aws.String(key), Data: []byte(data),
			SequenceNumber:              aws.String(strconv.FormatInt(s.sequence, 10)),
			ApproximateArrivalTimestamp: aws.Time(time.UnixMilli(time.Now().Add(s.ahead).UnixMilli())),
		})
		ids = append(ids, sh.id)
	}
	return ids
}

func (s *fakeStream) open() []*fakeShard {
	var open []*fakeShard
	for _, sh := range s.shards {
		if sh.closed.IsZero() {
			open = append(open, sh)
		}
	}
	slices.SortFunc(open, func(a, b *fakeShard) int { return a.keys.Start.Compare(b.keys.Start) })
	return open
}

// split and merge reshard the i-th open shard in the order of the hash keys.
func (s *fakeStream) split(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open()
	sh := open[i%len(open)]
	sh.closed = time.Now()
	low, high := sh.keys.SplitAt(sh.keys.Middle())
	s.add(low, sh.id)
	s.add(high, sh.id)
}

func (s *fakeStream) merge(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open()
	if len(open) < 2 {
		return
	}
	a, b := open[i%(len(open)-1)], open[i%(len(open)-1)+1]
	a.closed, b.closed = time.Now(), time.Now()
	s.add(a.keys.Join(b.keys), a.id, b.id)
}

func (s *fakeStream) call(ctx context.Context, op string, shard runnel.ShardID) error {
	if s.fault != nil {
		if err := s.fault(op, shard); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return &types.ResourceNotFoundException{Message: aws.String("Stream not found.")}
	}
	return ctx.Err()
}

// answer returns the metadata of an answer, as the SDK makes them.
func (s *fakeStream) answer() middleware.Metadata {
	if !s.dated {
		return middleware.Metadata{}
	}
	date := time.Now().Add(s.ahead).UTC().Format(http.TimeFormat)
	response := &smithyhttp.Response{Response: &http.Response{Header: http.Header{"Date": {date}}}}
	_, metadata, err := (&awsmiddleware.RecordResponseTiming{}).HandleDeserialize(
		context.Background(), middleware.DeserializeInput{},
		middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (
			middleware.DeserializeOutput, middleware.Metadata, error,
		) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		}))
	if err != nil {
		panic(err)
	}
	return metadata
}

func (s *fakeStream) DescribeStreamSummary(
	ctx context.Context, _ *kinesis.DescribeStreamSummaryInput, _ ...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	if err := s.call(ctx, "DescribeStreamSummary", ""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &kinesis.DescribeStreamSummaryOutput{
		ResultMetadata: s.answer(),
		StreamDescriptionSummary: &types.StreamDescriptionSummary{
			StreamName: aws.String(s.name), StreamStatus: types.StreamStatusActive,
			StreamCreationTimestamp: aws.Time(s.created),
		},
	}, nil
}

func (s *fakeStream) ListShards(
	ctx context.Context, in *kinesis.ListShardsInput, _ ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if err := s.call(ctx, "ListShards", ""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &kinesis.ListShardsOutput{}
	for _, sh := range s.shards {
		if sh.unlisted {
			continue
		}
		if f := in.ShardFilter; f != nil && !s.noFilter {
			at := *f.Timestamp
			if sh.opened.After(at) || !sh.closed.IsZero() && sh.closed.Before(at) {
				continue
			}
		}
		d := types.Shard{
			ShardId: aws.String(string(sh.id)),
			HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String(sh.keys.Start.String()),
				EndingHashKey:   aws.String(sh.keys.End.String()),
			},
			SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("1")},
		}
		if !sh.closed.IsZero() {
			d.SequenceNumberRange.EndingSequenceNumber = aws.String("99999999999")
		}
		if len(sh.parents) > 0 {
			d.ParentShardId = aws.String(string(sh.parents[0]))
		}
		if len(sh.parents) > 1 {
			d.AdjacentParentShardId = aws.String(string(sh.parents[1]))
		}
		out.Shards = append(out.Shards, d)
	}
	return out, nil
}

func (s *fakeStream) find(id string) (*fakeShard, error) {
	for _, sh := range s.shards {
		if string(sh.id) == id && !sh.unlisted {
			return sh, nil
		}
	}
	return nil, &types.ResourceNotFoundException{Message: aws.String("Shard " + id + " not found.")}
}

// An iterator is "shard/index/issued".
func (s *fakeStream) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, _ ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	if err := s.call(ctx, "GetShardIterator", runnel.ShardID(*in.ShardId)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sh, err := s.find(*in.ShardId)
	if err != nil {
		return nil, err
	}
	index := 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeTrimHorizon:
	case types.ShardIteratorTypeLatest:
		index = len(sh.records)
	case types.ShardIteratorTypeAtTimestamp:
		if in.Timestamp.After(time.Now().Add(s.ahead)) {
			return nil, &types.InvalidArgumentException{Message: aws.String("the future")}
		}
		index, _ = slices.BinarySearchFunc(sh.records, *in.Timestamp,
			func(r types.Record, at time.Time) int {
				return r.ApproximateArrivalTimestamp.Compare(at)
			})
	case types.ShardIteratorTypeAtSequenceNumber:
		index, _ = slices.BinarySearchFunc(sh.records, *in.StartingSequenceNumber,
			func(r types.Record, at string) int { return cmp.Compare(*r.SequenceNumber, at) })
	case types.ShardIteratorTypeAfterSequenceNumber:
		found := false
		index, found = slices.BinarySearchFunc(sh.records, *in.StartingSequenceNumber,
			func(r types.Record, at string) int { return cmp.Compare(*r.SequenceNumber, at) })
		if !found {
			return nil, &types.InvalidArgumentException{
				Message: aws.String("the sequence number is not of the shard " + *in.ShardId),
			}
		}
		index++
	default:
		return nil, &types.InvalidArgumentException{Message: aws.String("not here")}
	}
	return &kinesis.GetShardIteratorOutput{
		ShardIterator: aws.String(iterator(sh, index)), ResultMetadata: s.answer(),
	}, nil
}

func iterator(sh *fakeShard, index int) string {
	return fmt.Sprintf("%s/%d/%d", sh.id, index, time.Now().UnixNano())
}

func (s *fakeStream) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, _ ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	parts := strings.Split(*in.ShardIterator, "/")
	if err := s.call(ctx, "GetRecords", runnel.ShardID(parts[0])); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index, _ := strconv.Atoi(parts[1])
	issued, _ := strconv.ParseInt(parts[2], 10, 64)
	if time.Since(time.Unix(0, issued)) > 5*time.Minute {
		return nil, &types.ExpiredIteratorException{Message: aws.String("Iterator expired.")}
	}
	sh, err := s.find(parts[0])
	if err != nil {
		return nil, err
	}
	index = max(index, sh.trimmed)
	end := min(len(sh.records), index+int(*in.Limit))
	out := &kinesis.GetRecordsOutput{
		Records: slices.Clone(sh.records[index:end]), MillisBehindLatest: aws.Int64(0),
		ResultMetadata: s.answer(),
	}
	if end < len(sh.records) && !s.noBehind {
		behind := time.Since(*sh.records[end].ApproximateArrivalTimestamp).Milliseconds()
		out.MillisBehindLatest = aws.Int64(max(1, behind))
	}
	atEnd := end == len(sh.records) && !sh.closed.IsZero()
	if !atEnd || s.atEndOnly && len(out.Records) > 0 {
		out.NextShardIterator = aws.String(iterator(sh, end))
		return out, nil
	}
	for _, child := range s.shards {
		if slices.Contains(child.parents, sh.id) {
			c := types.ChildShard{
				ShardId: aws.String(string(child.id)),
				HashKeyRange: &types.HashKeyRange{
					StartingHashKey: aws.String(child.keys.Start.String()),
					EndingHashKey:   aws.String(child.keys.End.String()),
				},
			}
			for _, p := range child.parents {
				c.ParentShards = append(c.ParentShards, string(p))
			}
			out.ChildShards = append(out.ChildShards, c)
		}
	}
	return out, nil
}
