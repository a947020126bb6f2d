package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	kinesisapi "github.com/runnel-stream/runnel/server/internal/kinesis"
)

// rotten is a disk with ten records of a closed shard in a segment. The third and the last one are
// damaged.
func rotten(t *testing.T) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	s, err := server.Open(t.Context(), server.Config{
		Dir: "data", Streams: []server.StreamSpec{{Name: "s", Shards: 1}}, StreamDelay: -1,
		LogFileSize: 64 << 10, Logger: quiet,
	}, seam.OnFS(disk))
	if err != nil {
		t.Fatal(err)
	}
	must := func(target string, in map[string]any) {
		t.Helper()
		if code, body := ask(s, "Kinesis_20131202."+target, in); code != http.StatusOK {
			t.Fatal(body)
		}
	}
	for i := range 10 {
		must("PutRecord", map[string]any{
			"StreamName": "s", "PartitionKey": fmt.Sprintf("key-%d", i), "Data": "AAAAAAAAAAAA",
		})
	}
	must("SplitShard", map[string]any{
		"StreamName": "s", "ShardToSplit": "shardId-000000000000",
		"NewStartingHashKey": "170141183460469231731687303715884105728",
	})
	for range 40 { // so that the log's first file, which has the records, is not needed any more
		must("PutRecord", map[string]any{
			"StreamName": "s", "PartitionKey": "other", "Data": strings.Repeat("A", 8<<10),
		})
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = disk.Remove("data/wal/000000000001.wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the server may have used it again
		t.Fatal(err)
	}
	f, err := disk.Open("data/shards/1/00000000000000000001.seg")
	if err != nil {
		t.Fatal(err)
	}
	const frame = 28 + 5 + 9
	for _, record := range []int64{3, 10} {
		if _, err := f.WriteAt([]byte{0xff}, (record-1)*frame+30); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// page is a read's result.
type page struct {
	Records            []struct{ PartitionKey string }
	NextShardIterator  string
	MillisBehindLatest int
	ChildShards        []any
}

// readRotten reads the closed shard from its beginning on, until an error or its end.
func readRotten(t *testing.T, s *server.Server) (keys []string, failure string) {
	t.Helper()
	var at struct{ ShardIterator string }
	_, body := ask(s, "Kinesis_20131202.GetShardIterator", map[string]any{
		"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON",
	})
	if err := json.Unmarshal([]byte(body), &at); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		code, body := ask(s, "Kinesis_20131202.GetRecords", map[string]any{
			"ShardIterator": at.ShardIterator, "Limit": 4,
		})
		if code != http.StatusOK {
			return keys, fmt.Sprintf("%d %s", code, body)
		}
		var got page
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Records {
			keys = append(keys, r.PartitionKey)
		}
		if at.ShardIterator = got.NextShardIterator; at.ShardIterator == "" {
			if len(got.ChildShards) != 2 || got.MillisBehindLatest != 0 {
				t.Errorf("the end: %s", body)
			}
			return keys, ""
		}
	}
	return keys, "no end"
}

// A read of a damaged record fails with a message that names the next step.
func TestReadersSeeDamage(t *testing.T) {
	v := serve(t, server.Config{Dir: "data"}, seam.OnFS(rotten(t)))
	keys, failure := readRotten(t, v.Server)
	if len(keys) != 2 || !strings.HasPrefix(failure, "500 ") ||
		!strings.Contains(failure, "shardId-000000000000 are damaged") ||
		!strings.Contains(failure, "from its record 3 on") ||
		!strings.Contains(failure, "--skip-damaged") ||
		!strings.Contains(failure, `"__type":"InternalFailure"`) {
		t.Errorf("%q, %s", keys, failure)
	}
}

// With SkipDamaged reads go on behind damaged records, and the closed shard ends although its last
// record is lost. The metric counts each record once.
func TestReadersSkipDamage(t *testing.T) {
	v := serve(t, server.Config{Dir: "data", SkipDamaged: true}, seam.OnFS(rotten(t)))
	want := []string{"key-0", "key-1", "key-3", "key-4", "key-5", "key-6", "key-7", "key-8"}
	for range 2 {
		if keys, failure := readRotten(t, v.Server); failure != "" || !slices.Equal(keys, want) {
			t.Fatalf("%q, %s", keys, failure)
		}
	}
	shown := scrape(t, v.get, v.endpoint)
	if n := of(shown, "runnel_damaged_records_total", ""); n != 2 {
		t.Errorf("%v records count as damaged", n)
	}
}

// A fan-out subscription passes damaged records, too, and ends with the shard.
func TestSubscriptionsSkipDamage(t *testing.T) {
	v := serve(t, server.Config{Dir: "data", SkipDamaged: true}, seam.OnFS(rotten(t)))
	keys := subscribeToEnd(t, v.client, "shardId-000000000000")
	want := []string{"key-0", "key-1", "key-3", "key-4", "key-5", "key-6", "key-7", "key-8"}
	if !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
}

// A repaired directory serves what a server that skips damage serves.
func TestARepairServesWhatSkippingServes(t *testing.T) {
	disk := rotten(t)
	report, err := fsck.Repair(t.Context(), disk, "data", true, kinesisapi.SequenceNumber)
	if err != nil || !report.OK || len(report.Lost) != 2 {
		t.Fatalf("%v, %+v", err, report)
	}
	v := serve(t, server.Config{Dir: "data"}, seam.OnFS(disk))
	keys, failure := readRotten(t, v.Server)
	if failure != "" || len(keys) != 8 {
		t.Errorf("%q, %s", keys, failure)
	}
	// The list has the sequence numbers of the records beside the lost ones.
	first, last := report.Lost[0], report.Lost[1]
	if v.keyAt(t, first.After.SequenceNumber) != "key-1" ||
		v.keyAt(t, first.Before.SequenceNumber) != "key-3" ||
		v.keyAt(t, last.After.SequenceNumber) != "key-8" || last.Before != nil {
		t.Errorf("%v\n%v", first, last)
	}
}

// keyAt returns the partition key of the record with a sequence number.
func (c client) keyAt(t *testing.T, number string) string {
	t.Helper()
	at, err := c.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType:      types.ShardIteratorTypeAtSequenceNumber,
		StartingSequenceNumber: aws.String(number),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: at.ShardIterator})
	if err != nil || aws.ToString(got.Records[0].SequenceNumber) != number {
		t.Fatalf("at %s: %v, %v", number, got, err)
	}
	return aws.ToString(got.Records[0].PartitionKey)
}

// subscribeToEnd reads a closed shard by an event stream, to its end, and returns the keys.
func subscribeToEnd(t *testing.T, c client, shard string) (keys []string) {
	t.Helper()
	described, err := c.DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{
		StreamARN: described.StreamDescriptionSummary.StreamARN, ConsumerName: aws.String("c"),
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &kinesis.SubscribeToShardInput{
		ConsumerARN: consumer.Consumer.ConsumerARN, ShardId: aws.String(shard),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	}
	var out *kinesis.SubscribeToShardOutput
	within(t, 10*time.Second, func() bool { // the consumer is being made
		out, err = c.SubscribeToShard(t.Context(), in)
		return err == nil
	})
	defer out.GetStream().Close()
	for event := range out.GetStream().Events() {
		value := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value
		for _, r := range value.Records {
			keys = append(keys, aws.ToString(r.PartitionKey))
		}
		if len(value.ChildShards) > 0 {
			return keys
		}
	}
	t.Fatalf("the stream of events ended before the shard: %v", out.GetStream().Err())
	return nil
}
