package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/runneltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stream = "orders"

func put(ctx context.Context, client *kinesis.Client, key, data string) error {
	_, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: aws.String(stream), PartitionKey: aws.String(key), Data: []byte(data),
	})
	return err
}

// readAll reads every record of the stream to its end.
func readAll(ctx context.Context, t *testing.T, client *kinesis.Client) []string {
	t.Helper()
	shards, err := client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: aws.String(stream)})
	if err != nil {
		t.Fatal(err)
	}
	var data []string
	for _, shard := range shards.Shards {
		iterator, err := client.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
			StreamName: aws.String(stream), ShardId: shard.ShardId,
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		for next := iterator.ShardIterator; next != nil; {
			got, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: next})
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range got.Records {
				data = append(data, string(record.Data))
			}
			if next = got.NextShardIterator; *got.MillisBehindLatest == 0 {
				break
			}
		}
	}
	return data
}

func makeTable(ctx context.Context, t *testing.T, client *dynamodb.Client) {
	t.Helper()
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("leases"), BillingMode: dynamotypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{
			AttributeName: aws.String("leaseKey"),
			AttributeType: dynamotypes.ScalarAttributeTypeS,
		}},
		KeySchema: []dynamotypes.KeySchemaElement{{
			AttributeName: aws.String("leaseKey"), KeyType: dynamotypes.KeyTypeHash,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func count(ctx context.Context, client *dynamodb.Client, key string) error {
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String("leases"),
		Key: map[string]dynamotypes.AttributeValue{
			"leaseKey": &dynamotypes.AttributeValueMemberS{Value: key},
		},
		UpdateExpression: aws.String("ADD leaseCounter :one"),
		ExpressionAttributeValues: map[string]dynamotypes.AttributeValue{
			":one": &dynamotypes.AttributeValueMemberN{Value: "1"},
		},
	})
	return err
}

// TestServer uses a server over loopback with the SDK's own constructors.
func TestServer(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream(stream, 2))
	client := kinesis.NewFromConfig(server.AWSConfig())
	if err := put(t.Context(), client, "k", "hello"); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t.Context(), t, client); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("read %q", got)
	}
	makeTable(t.Context(), t, server.DynamoDB())
	if err := count(t.Context(), dynamodb.NewFromConfig(server.AWSConfig()), "a"); err != nil {
		t.Error(err)
	}
	answer, err := http.Get(server.Endpoint() + "/health") // open to any client
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || string(body) != "ok\n" {
		t.Errorf("health: %d %s", answer.StatusCode, body)
	}
}

// TestVirtualTime runs 50 SDK clients in a synctest bubble. Ten virtual minutes pass at once,
// without a real network. A goroutine that is left over would keep the bubble from ending.
func TestVirtualTime(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		const clients, calls = 50, 20
		start := time.Now()
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream(stream, 4))
		makeTable(t.Context(), t, server.DynamoDB())
		var fleet sync.WaitGroup
		for i := range clients {
			fleet.Go(func() {
				streams := kinesis.NewFromConfig(server.AWSConfig())
				tables := dynamodb.NewFromConfig(server.AWSConfig())
				for n := range calls {
					time.Sleep(30 * time.Second)
					key := fmt.Sprintf("%d", i)
					if err := put(t.Context(), streams, key, fmt.Sprint(i, n)); err != nil {
						t.Error(err)
					}
					if err := count(t.Context(), tables, key); err != nil {
						t.Error(err)
					}
				}
			})
		}
		fleet.Wait()
		if passed := time.Since(start); passed < 10*time.Minute {
			t.Errorf("only %v passed", passed)
		}
		if got := readAll(t.Context(), t, server.Kinesis()); len(got) != clients*calls {
			t.Errorf("%d records, want %d", len(got), clients*calls)
		}
	})
	t.Logf("ten virtual minutes took %v", time.Since(began))
}

// TestKillLosesNothingAcknowledged kills the server under load again and again, on a disk that
// loses unsynced writes.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { killUnderLoad(t, seed) })
		})
	}
}

func killUnderLoad(t *testing.T, seed uint64) {
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithCrashes(seed),
		runneltest.WithStream(stream, 2), runneltest.WithFaults("PutRecord:delay=50ms"))
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var load sync.WaitGroup
	for i := range 8 {
		client := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			o.Retryer = aws.NopRetryer{}
		})
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				data := fmt.Sprintf("%d.%d", i, n)
				if err := put(ctx, client, data, data); err != nil {
					time.Sleep(time.Millisecond) // the server may be down
					continue
				}
				mu.Lock()
				acknowledged[data] = true
				mu.Unlock()
			}
		})
	}
	for range 5 {
		time.Sleep(470 * time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Millisecond)
		if err := server.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	load.Wait()
	stored := readAll(t.Context(), t, server.Kinesis())
	if len(acknowledged) < 100 {
		t.Errorf("only %d records were acknowledged", len(acknowledged))
	}
	for data := range maps.Keys(acknowledged) {
		if !slices.Contains(stored, data) {
			t.Errorf("%s was acknowledged and is gone", data)
		}
	}
}

func TestRestartOnADirectory(t *testing.T) {
	dir := t.TempDir()
	first := runneltest.NewServer(t, runneltest.WithDir(dir), runneltest.WithStream(stream, 1))
	if err := put(t.Context(), first.Kinesis(), "k", "one"); err != nil {
		t.Fatal(err)
	}
	endpoint := first.Endpoint()
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(endpoint + "/health"); err == nil {
		t.Error("a killed server answers")
	}
	if err := first.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.Endpoint() != endpoint {
		t.Errorf("the endpoint went from %s to %s", endpoint, first.Endpoint())
	}
	if err := put(t.Context(), first.Kinesis(), "k", "two"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if err := first.Restart(t.Context()); !errors.Is(err, runneltest.ErrClosed) {
		t.Errorf("restart after close: %v", err)
	}
	second := runneltest.NewServer(t, runneltest.WithDir(dir))
	if got := readAll(t.Context(), t, second.Kinesis()); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("read %q", got)
	}
}

func TestWorlds(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream(stream, 1),
		runneltest.WithWorld("111122223333", "eu-west-1"))
	got, err := server.Kinesis().DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
	if err != nil {
		t.Fatal(err)
	}
	const want = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders"
	if arn := *got.StreamDescriptionSummary.StreamARN; arn != want {
		t.Errorf("%s, want %s", arn, want)
	}
	elsewhere := server.AWSConfig()
	client := kinesis.NewFromConfig(elsewhere, func(o *kinesis.Options) { o.Region = "us-west-2" })
	var missing *types.ResourceNotFoundException
	_, err = client.DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
	if !errors.As(err, &missing) {
		t.Errorf("seen from another region: %v", err)
	}
}

func TestSetFaults(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream(stream, 1))
	if err := server.SetFaults("nonsense"); !errors.Is(err, fault.ErrSpec) {
		t.Errorf("nonsense: %v", err)
	}
	if err := server.SetFaults("PutRecord:throttle@1"); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), server.Kinesis(), "k", "x"); err != nil { // retried by the SDK
		t.Error(err)
	}
	if got := server.FaultCounts()["PutRecord:throttle"]; got != 1 {
		t.Errorf("%d faults, want 1", got)
	}
}

func TestBadOptions(t *testing.T) {
	for name, option := range map[string]runneltest.Option{
		"faults":   runneltest.WithFaults("nonsense"),
		"misspelt": runneltest.WithFaults("PutRecrods:lose-answer"),
		"world":    runneltest.WithWorld("me", "eu-west-1"),
		"stream":   runneltest.WithStream("", 1),
		"addr":     runneltest.WithAddr("nonsense"),
	} {
		if _, err := runneltest.Start(t.Context(), option); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
