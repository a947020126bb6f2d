package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
)

const (
	offered     = 45_000 // records a second
	putBytes    = 10 << 10
	putKeys     = 10_000
	putAhead    = 500 * time.Microsecond // the caller sleeps if it is ahead by more
	putPayloads = 16                     // distinct ones
)

// BenchmarkPutLatency measures how long one call of Put takes while one caller offers 45,000
// records of 10 KiB a second, of 10,000 keys, to a stream that answers at once. So it measures the
// producer alone: its locks, its encoding and its garbage. A caller that falls behind its schedule
// puts without a pause; records/s shows whether it kept up. The goal is a us-p99.9 below 500.
func BenchmarkPutLatency(b *testing.B) {
	for _, order := range []producer.Order{producer.OrderKey, producer.OrderPlain} {
		b.Run(fmt.Sprintf("order=%v", order), func(b *testing.B) { putLatency(b, order) })
	}
}

func putLatency(b *testing.B, order producer.Order) {
	p, err := producer.New(b.Context(), producer.Config{
		Stream: "bench", Kinesis: &instant{}, Order: order,
	})
	if err != nil {
		b.Fatal(err)
	}
	keys, payloads := putInputs()
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	began := time.Now()
	for i := range b.N {
		due := began.Add(time.Duration(i) * time.Second / offered)
		if ahead := time.Until(due); ahead > putAhead {
			time.Sleep(ahead)
		}
		record := runnel.Record{PartitionKey: keys[i%putKeys], Data: payloads[i%putPayloads]}
		start := time.Now()
		if err := p.PutFunc(b.Context(), record, nil); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	rate := float64(b.N) / time.Since(began).Seconds()
	b.StopTimer()
	if err := p.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	for _, q := range []struct {
		unit string
		part float64
	}{{"us-p50", 0.5}, {"us-p99", 0.99}, {"us-p99.9", 0.999}, {"us-max", 1}} {
		at := took[int(q.part*float64(len(took)-1))]
		b.ReportMetric(float64(at.Nanoseconds())/1e3, q.unit)
	}
	b.ReportMetric(rate, "records/s")
	b.ReportMetric(0, "ns/op") // the pace is fixed
}

// putInputs returns the keys and some payloads without a pattern that a compressor would find.
func putInputs() (keys []string, payloads [][]byte) {
	for i := range putKeys {
		keys = append(keys, "key-"+strconv.Itoa(i*7919%putKeys))
	}
	for i := range putPayloads {
		payload := make([]byte, putBytes)
		for j := range payload {
			payload[j] = byte('a' + (j*j+i)%26)
		}
		payloads = append(payloads, payload)
	}
	return keys, payloads
}

// instant is a stream of one shard that stores nothing and answers at once.
type instant struct{ number atomic.Uint64 }

func (s *instant) PutRecords(
	_ context.Context, input *kinesis.PutRecordsInput, _ ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	output := &kinesis.PutRecordsOutput{
		Records: make([]types.PutRecordsResultEntry, len(input.Records)),
	}
	shard := aws.String("shardId-000000000000")
	number := s.number.Add(uint64(len(input.Records)))
	for i := range output.Records {
		at := aws.String("4966" + strconv.FormatUint(1e15+number-uint64(len(input.Records)-i), 10))
		output.Records[i] = types.PutRecordsResultEntry{ShardId: shard, SequenceNumber: at}
	}
	return output, nil
}

func (*instant) PutRecord(
	context.Context, *kinesis.PutRecordInput, ...func(*kinesis.Options),
) (*kinesis.PutRecordOutput, error) {
	return nil, fmt.Errorf("no order of this benchmark puts single records")
}
