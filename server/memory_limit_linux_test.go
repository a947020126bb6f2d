package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/server"
)

const smallMemory = 16 << 20

// TestMemoryLimitOfRecords puts far more records than the memory holds: each further one is
// throttled with the limit's name, what was stored can be read, the server stays healthy, and the
// room of a deleted stream is used again.
func TestMemoryLimitOfRecords(t *testing.T) {
	v := serve(t, server.Config{
		Memory: true, MemoryLimit: smallMemory, StreamDelay: -1,
		Streams: []server.StreamSpec{{Name: "s", Shards: 2}, {Name: "t", Shards: 1}},
	})
	put := func(stream string) (*kinesis.PutRecordsOutput, error) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
		for i := range 8 {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				Data: make([]byte, 64<<10), PartitionKey: aws.String(fmt.Sprint(i)),
			})
		}
		return v.PutRecords(t.Context(), in)
	}
	var stored, refused int
	for range 100 { // 50 MiB
		out, err := put("s")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Records {
			if r.ErrorCode == nil {
				stored++
				continue
			}
			refused++
			if *r.ErrorCode != "ProvisionedThroughputExceededException" ||
				!strings.Contains(*r.ErrorMessage, "--memory") {
				t.Fatalf("a record was refused with %s, %s", *r.ErrorCode, *r.ErrorMessage)
			}
		}
	}
	t.Logf("%d records of 64 KiB in %d MiB", stored, smallMemory>>20)
	if size := stored * 64 << 10; size < smallMemory/2 || size > smallMemory {
		t.Errorf("%d records are stored, %d bytes of %d", stored, size, smallMemory)
	}
	_, err := v.PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("t"), PartitionKey: aws.String("k"), Data: make([]byte, 1<<20),
	})
	var throttled *types.ProvisionedThroughputExceededException
	if !errors.As(err, &throttled) || !strings.Contains(throttled.ErrorMessage(), "--memory") {
		t.Errorf("PutRecord: %v", err)
	}
	if code, text := v.health(t); code != http.StatusOK || !strings.Contains(text, "--memory") {
		t.Errorf("health: %d %s", code, text)
	}
	if got := v.count(t, "s"); got != stored {
		t.Errorf("%d records can be read, and %d were stored", got, stored)
	}
	if _, err := v.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{
		StreamName: aws.String("s"),
	}); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, func() bool {
		out, err := put("t")
		return err == nil && *out.FailedRecordCount == 0
	})
}

// TestMemoryLimitOfShards creates streams and tables without data until the memory is full.
func TestMemoryLimitOfShards(t *testing.T) {
	v := serve(t, server.Config{Memory: true, MemoryLimit: smallMemory, StreamDelay: -1})
	var err error
	shards := 0
	for ; err == nil && shards < 50_000; shards += 500 {
		_, err = v.CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String(fmt.Sprint("many", shards)), ShardCount: aws.Int32(500),
		})
	}
	var limited *types.LimitExceededException
	if !errors.As(err, &limited) || !strings.Contains(limited.ErrorMessage(), "--memory") {
		t.Errorf("after %d shards: %v", shards, err)
	}
	_, err = v.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{
		StreamName: aws.String("many0"),
	})
	if err != nil {
		t.Error(err)
	}
	within(t, 20*time.Second, func() bool {
		_, err := v.CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String("again"), ShardCount: aws.Int32(1),
		})
		return err == nil
	})
}

// reshardTo scales a stream, and reports whether the full memory refused it.
func (v *served) reshardTo(t *testing.T, stream string, shards int32) (refused bool) {
	t.Helper()
	_, err := v.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{
		StreamName: &stream, TargetShardCount: &shards, ScalingType: types.ScalingTypeUniformScaling,
	})
	var limited *types.LimitExceededException
	refused = errors.As(err, &limited) && strings.Contains(limited.ErrorMessage(), "--memory")
	if err != nil && !refused {
		t.Fatal(err)
	}
	return refused
}

// TestMemoryLimitOfReshards scales a stream up and down until the memory is full: the shards that it
// had count until they expire.
func TestMemoryLimitOfReshards(t *testing.T) {
	v := serve(t, server.Config{Memory: true, MemoryLimit: smallMemory, StreamDelay: -1})
	for _, shards := range []int32{10_000, 1000} {
		_, err := v.CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String("scaled"), ShardCount: &shards,
		})
		if fits := shards == 1000; fits != (err == nil) {
			t.Fatalf("a stream of %d shards: %v", shards, err)
		}
	}
	scaled, refused := 0, false
	for ; !refused && scaled < 100; scaled++ {
		refused = v.reshardTo(t, "scaled", 2000-int32(scaled%2)*1000)
		all := scrape(t, http.Get, v.endpoint)
		if used := of(all, "runnel_memory_bytes", ""); used > smallMemory {
			t.Errorf("after %d reshards %.0f bytes of %d are in use", scaled, used, smallMemory)
		}
	}
	if !refused || scaled < 2 {
		t.Errorf("after %d reshards the last one is refused: %t", scaled, refused)
	}
}

// TestMemoryLimitOfShortRecords puts a short record into each of many shards. It checks that the
// files of these records leave the memory for more.
func TestMemoryLimitOfShortRecords(t *testing.T) {
	const shards = 1000 // 4 MiB
	v := serve(t, server.Config{
		Memory: true, MemoryLimit: smallMemory, StreamDelay: -1,
		Streams: []server.StreamSpec{{Name: "many", Shards: shards}},
	})
	each := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(shards))
	for from := int64(0); from < shards; from += 500 {
		var records []types.PutRecordsRequestEntry
		for i := from; i < from+500; i++ {
			at := new(big.Int).Add(new(big.Int).Mul(each, big.NewInt(i)), big.NewInt(shards))
			records = append(records, types.PutRecordsRequestEntry{
				Data: []byte("x"), PartitionKey: aws.String("k"), ExplicitHashKey: aws.String(at.String()),
			})
		}
		out, err := v.PutRecords(t.Context(), &kinesis.PutRecordsInput{
			StreamName: aws.String("many"), Records: records,
		})
		if err != nil || *out.FailedRecordCount > 0 {
			t.Fatal(err, out)
		}
	}
	within(t, 20*time.Second, func() bool { // every record has a place in its shard's file
		return of(scrape(t, http.Get, v.endpoint), "runnel_log_pending_bytes", "") == 0
	})
	if used := of(scrape(t, http.Get, v.endpoint), "runnel_memory_bytes", ""); used > smallMemory/2 {
		t.Errorf("%.0f bytes are in use", used)
	}
}

// TestMemoryLimitOfPlannedReshards begins reshards that end in an hour: their shards count already.
func TestMemoryLimitOfPlannedReshards(t *testing.T) {
	streams := make([]server.StreamSpec, 5)
	for i := range streams {
		streams[i] = server.StreamSpec{Name: fmt.Sprint("scaled", i), Shards: 400}
	}
	v := serve(t, server.Config{
		Memory: true, MemoryLimit: smallMemory, StreamDelay: time.Hour, Streams: streams,
	})
	begun := 0 // 8 MiB are in use, and each reshard opens 800 shards of 4 KiB
	for begun < len(streams) && !v.reshardTo(t, streams[begun].Name, 800) {
		begun++
	}
	if begun != 2 {
		t.Errorf("%d reshards are under way, want 2", begun)
	}
}

// count returns the number of records that can be read from the start of a stream.
func (v *served) count(t *testing.T, stream string) (n int) {
	t.Helper()
	shards, err := v.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &stream})
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range shards.Shards {
		at, err := v.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
			StreamName: &stream, ShardId: sh.ShardId,
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		for next := at.ShardIterator; ; {
			out, err := v.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: next})
			if err != nil {
				t.Fatal(err)
			}
			if next = out.NextShardIterator; len(out.Records) == 0 {
				break
			}
			n += len(out.Records)
		}
	}
	return n
}

// TestMemoryLimitOfItems fills the memory with items: those that grow are throttled, alone and in
// transactions. Others, such as a lease's next counter, are not, and a deleted item or table makes
// room.
func TestMemoryLimitOfItems(t *testing.T) {
	v := serve(t, server.Config{Memory: true, MemoryLimit: smallMemory})
	db := dynamodb.NewFromConfig(
		awsclient.ForServer(v.endpoint, "", awsclient.LocalRegion, nil),
		func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	table := func(name string) {
		t.Helper()
		if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: ddb.BillingModePayPerRequest,
			KeySchema: []ddb.KeySchemaElement{{
				AttributeName: aws.String("k"), KeyType: ddb.KeyTypeHash,
			}},
			AttributeDefinitions: []ddb.AttributeDefinition{{
				AttributeName: aws.String("k"), AttributeType: ddb.ScalarAttributeTypeS,
			}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	table("items")
	data := bytes.Repeat([]byte{1}, 100<<10)
	key := func(i int) map[string]ddb.AttributeValue {
		return map[string]ddb.AttributeValue{"k": &ddb.AttributeValueMemberS{Value: fmt.Sprint(i)}}
	}
	item := func(i int) map[string]ddb.AttributeValue {
		item := key(i)
		item["d"] = &ddb.AttributeValueMemberB{Value: data}
		item["c"] = &ddb.AttributeValueMemberN{Value: "1"}
		return item
	}
	put := func(i int) error {
		_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("items"), Item: item(i),
		})
		return err
	}
	wantThrottled := func(what string, err error) {
		t.Helper()
		var throttled *ddb.ProvisionedThroughputExceededException
		if !errors.As(err, &throttled) || !strings.Contains(throttled.ErrorMessage(), "--memory") {
			t.Errorf("%s: %v", what, err)
		}
	}
	n, err := 0, error(nil)
	for ; n < 1000 && err == nil; n++ {
		err = put(n)
	}
	t.Logf("%d items of 100 KiB in %d MiB", n-1, smallMemory>>20)
	wantThrottled("PutItem", err)
	_, err = db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []ddb.TransactWriteItem{
			{Put: &ddb.Put{TableName: aws.String("items"), Item: item(n)}},
		},
	})
	wantThrottled("TransactWriteItems", err)
	remove := func(i int) ddb.TransactWriteItem {
		return ddb.TransactWriteItem{Delete: &ddb.Delete{TableName: aws.String("items"), Key: key(i)}}
	}
	short := func(i int) ddb.TransactWriteItem {
		return ddb.TransactWriteItem{Put: &ddb.Put{TableName: aws.String("items"), Item: key(i)}}
	}
	more := 1000
	fill := func() { // to the limit again
		for err = nil; err == nil; more++ {
			err = put(more)
		}
	}
	for i, steps := range [][]ddb.TransactWriteItem{ // each deletes a long item and puts a short one
		{short(n + 1), remove(n - 2)}, {remove(n - 3), short(n + 2)},
	} {
		fill()
		if _, err = db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: steps,
		}); err != nil {
			t.Errorf("transaction %d that deletes more than it puts: %v", i, err)
		}
	}
	fill()
	for what, change := range map[string]string{
		"a counter": "SET c = c + :1", "a new attribute": "SET e = :1",
	} {
		_, err = db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("items"), Key: key(0), UpdateExpression: &change,
			ExpressionAttributeValues: map[string]ddb.AttributeValue{
				":1": &ddb.AttributeValueMemberN{Value: "1"},
			},
		})
		if what == "a counter" && err != nil {
			t.Errorf("an update that does not grow: %v", err)
		}
		if what != "a counter" {
			wantThrottled(what, err)
		}
	}
	for i := 1; i < n/2; i++ { // a snapshot may take the room of the first ones
		if _, err = db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String("items"), Key: key(i),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(1); err != nil {
		t.Errorf("a put after deletions: %v", err)
	}
	if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{
		TableName: aws.String("items"),
	}); err != nil {
		t.Fatal(err)
	}
	table("items")
	for i := range 3 {
		if err := put(i); err != nil {
			t.Errorf("a put into a new table: %v", err)
		}
	}
}
