package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/retry"
)

// stream is a Kinesis stream of one shard in memory, with the faults that a test sets.
type stream struct {
	latency time.Duration
	forget  bool // store nothing, for benchmarks
	// fault is called before each call. A returned error is the call's, and stored says whether its
	// records were stored nevertheless. Nil: no faults.
	fault func(ctx context.Context, n int, input *kinesis.PutRecordsInput) (stored bool, err error)
	// refuse returns the error code of each record; "" for none.
	refuse func(n int, r *types.PutRecordsRequestEntry) string
	// shards returns the index of a record's shard by its explicit hash key, or, without one, by
	// its partition key. Nil: there is one shard.
	shards func(key string) int
	// chained is called before each PutRecord, with its SequenceNumberForOrdering.
	chained func(key, after string) error

	mu     sync.Mutex
	calls  int
	flying int
	most   int      // the most calls in flight at a time
	keys   []string // the keys stored, in order
	data   []string
	sizes  []int // the number of records of each call
}

func (s *stream) PutRecords(ctx context.Context, input *kinesis.PutRecordsInput,
	options ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.flying++
	s.most = max(s.most, s.flying)
	s.sizes = append(s.sizes, len(input.Records))
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying--
		s.mu.Unlock()
	}()
	var o kinesis.Options
	for _, option := range options {
		option(&o)
	}
	if o.Retryer == nil || o.Retryer.MaxAttempts() != 1 {
		return nil, errors.New("the SDK would retry")
	}
	if s.latency > 0 {
		if err := retry.Wait(ctx, s.latency); err != nil {
			return nil, err
		}
	}
	if s.fault != nil {
		stored, err := s.fault(ctx, n, input)
		if stored {
			s.store(n, input)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.store(n, input), nil
}

// PutRecord is a call of one record.
func (s *stream) PutRecord(ctx context.Context, input *kinesis.PutRecordInput,
	options ...func(*kinesis.Options),
) (*kinesis.PutRecordOutput, error) {
	if s.chained != nil {
		err := s.chained(*input.PartitionKey, aws.ToString(input.SequenceNumberForOrdering))
		if err != nil {
			return nil, err
		}
	}
	output, err := s.PutRecords(ctx, &kinesis.PutRecordsInput{
		StreamName: input.StreamName, StreamARN: input.StreamARN,
		Records: []types.PutRecordsRequestEntry{{
			PartitionKey: input.PartitionKey, ExplicitHashKey: input.ExplicitHashKey, Data: input.Data,
		}},
	}, options...)
	if err != nil {
		return nil, err
	}
	r := output.Records[0]
	if r.ErrorCode != nil {
		return nil, &smithy.GenericAPIError{Code: *r.ErrorCode, Message: *r.ErrorMessage}
	}
	return &kinesis.PutRecordOutput{ShardId: r.ShardId, SequenceNumber: r.SequenceNumber}, nil
}

func (s *stream) store(n int, input *kinesis.PutRecordsInput) *kinesis.PutRecordsOutput {
	s.mu.Lock()
	defer s.mu.Unlock()
	output := &kinesis.PutRecordsOutput{
		Records: make([]types.PutRecordsResultEntry, 0, len(input.Records)),
	}
	for i := range input.Records {
		r := &input.Records[i]
		if s.refuse != nil {
			if code := s.refuse(n, r); code != "" {
				output.Records = append(output.Records, types.PutRecordsResultEntry{
					ErrorCode: &code, ErrorMessage: aws.String("on request"),
				})
				continue
			}
		}
		if s.forget {
			output.Records = append(output.Records, types.PutRecordsResultEntry{
				ShardId: &someShard, SequenceNumber: &someNumber,
			})
			continue
		}
		shard := someShard
		if s.shards != nil {
			shard = fmt.Sprintf("shardId-%012d", s.shards(aws.ToString(cmp.Or(r.ExplicitHashKey, r.PartitionKey))))
		}
		s.keys = append(s.keys, *r.PartitionKey)
		s.data = append(s.data, string(r.Data))
		output.Records = append(output.Records, types.PutRecordsResultEntry{
			ShardId:        &shard,
			SequenceNumber: aws.String(fmt.Sprint(len(s.keys))),
		})
	}
	return output
}

var someShard, someNumber = "shardId-000000000000", "1"

// userRecord is a record as a reader gets it, unpacked from its aggregate.
type userRecord struct{ key, data string }

// read returns the stream's records as a reader that unpacks aggregates gets them: all of them, or
// those that the filter delivers.
func (s *stream) read(tb testing.TB, filtered bool) (records []userRecord) {
	tb.Helper()
	var filter aggregate.Filter
	var d aggregate.Decoder
	for i, data := range s.data {
		if !d.Open([]byte(data)) {
			records = append(records, userRecord{s.keys[i], data})
			continue
		}
		passed := map[int]bool{}
		for sub := range filter.Pass(&d, time.Time{}) {
			passed[sub] = true
		}
		for sub, r := range d.Records() {
			if passed[sub] || !filtered {
				records = append(records, userRecord{r.PartitionKey, string(r.Data)})
			}
		}
	}
	if filter.Counts.Malformed+filter.Counts.Unfiltered > 0 {
		tb.Errorf("units are malformed: %+v", filter.Counts)
	}
	return records
}

// inOrder checks the data of each key, which tests put as "1", "2", …: their first occurrences must
// be in order and complete up to the last. It returns the number of duplicates.
func inOrder(tb testing.TB, records []userRecord) (doubles int) {
	tb.Helper()
	newest := map[string]int{}
	for _, r := range records {
		var number int
		fmt.Sscan(r.data, &number)
		switch {
		case number == newest[r.key]+1:
			newest[r.key] = number
		case number <= newest[r.key]:
			doubles++
		default:
			tb.Fatalf("key %s: %d is read first after %d", r.key, number, newest[r.key])
		}
	}
	return doubles
}

// inOrder checks all records in the stream.
func (s *stream) inOrder(tb testing.TB) (doubles int) {
	tb.Helper()
	return inOrder(tb, s.read(tb, false))
}

// errRefusedConnection is the error of net/http if no server listens on the port.
var errRefusedConnection = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func apiError(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message}
}

// open returns a producer for the stream, and a context. The order is OrderPlain unless set chooses
// another.
func (s *stream) open(tb testing.TB, set func(*Config)) (*Producer, context.Context) {
	tb.Helper()
	cfg := Config{Stream: "orders", Kinesis: s, Order: OrderPlain, Logger: silent}
	if set != nil {
		set(&cfg)
	}
	p, err := New(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return p, tb.Context()
}

// load puts records of random keys, a few of them busy, numbered from 1 for each key.
func load(tb testing.TB, p *Producer, ctx context.Context, records, keys int, each func(Result)) {
	tb.Helper()
	random := rand.New(rand.NewPCG(uint64(records), uint64(keys)))
	numbers := map[string]int{}
	for range records {
		key := fmt.Sprint("key-", random.IntN(keys))
		if random.IntN(5) == 0 {
			key = "hot"
		}
		numbers[key]++
		record := runnel.Record{PartitionKey: key, Data: fmt.Append(nil, numbers[key])}
		if err := p.PutFunc(ctx, record, each); err != nil {
			tb.Fatal(err)
		}
	}
}
