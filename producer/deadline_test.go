package producer_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// slowOnce are credentials with a slow first Retrieve, like that of a process that is stopped just
// before it signs.
type slowOnce struct {
	aws.CredentialsProvider
	wait  time.Duration
	asked atomic.Int32
}

func (s *slowOnce) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if s.asked.Add(1) == 1 {
		time.Sleep(s.wait)
	}
	return s.CredentialsProvider.Retrieve(ctx)
}

// dialOnce is an HTTP client with a slow first connection, like that of a machine that is suspended
// while it waits for one.
type dialOnce struct {
	aws.HTTPClient
	wait  time.Duration
	calls atomic.Int32
}

func (d *dialOnce) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") == "Kinesis_20131202.PutRecords" && d.calls.Add(1) == 1 {
		time.Sleep(d.wait)
	}
	return d.HTTPClient.Do(r)
}

// A call that is ready to be sent more than a horizon after it was made is not sent, whatever
// caused the delay. Its records go out in a unit with another number.
func TestNothingIsSentAfterTheHorizon(t *testing.T) {
	for _, c := range []struct {
		name       string
		sign, dial time.Duration
		want       uint64
	}{
		{"in time", time.Second, 0, 1},
		{"slow to sign", 3 * time.Second, 0, 2},
		{"connected in time", 0, time.Second, 1},
		{"slow to connect", 0, 3 * time.Second, 2},
	} {
		name, want := c.name, c.want
		synctest.Test(t, func(t *testing.T) {
			seam.SetH(t, 2*time.Second)
			ctx := t.Context()
			server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithLogger(quiet),
				runneltest.WithStream("orders", 1))
			options := server.Kinesis().Options()
			options.Credentials = &slowOnce{
				CredentialsProvider: options.Credentials, wait: c.sign,
			}
			options.HTTPClient = &dialOnce{HTTPClient: options.HTTPClient, wait: c.dial}
			p, err := producer.New(ctx, producer.Config{
				Stream: "orders", Kinesis: kinesis.New(options), Logger: quiet,
			})
			if err != nil {
				t.Fatal(err)
			}
			record := runnel.Record{PartitionKey: "a", Data: []byte("1")}
			if err := p.PutFunc(ctx, record, func(r producer.Result) {
				if r.Err != nil || r.Unknown > 0 {
					t.Errorf("%+v", r)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if stats := p.Stats(); stats.Withheld != want-1 || stats.Renewed != want-1 || stats.Calls != 1 {
				t.Errorf("%s: %+v", name, stats)
			}
			if numbers := numbersIn(t, server.Kinesis()); len(numbers) != 1 || numbers[0] != want {
				t.Errorf("%v: the units %v are in the stream, want %d", name, numbers, want)
			}
		})
	}
}

// numbersIn returns the numbers of the units in the stream's first shard.
func numbersIn(t *testing.T, client *kinesis.Client) (numbers []uint64) {
	t.Helper()
	start, err := client.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("orders"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: "TRIM_HORIZON",
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{
		ShardIterator: start.ShardIterator,
	})
	if err != nil {
		t.Fatal(err)
	}
	var d aggregate.Decoder
	for _, r := range page.Records {
		if !d.Open(r.Data) {
			t.Fatal("a record is no unit: " + strconv.Quote(string(r.Data)))
		}
		unit, _ := d.AppendRecords(nil)[0].Unit()
		numbers = append(numbers, unit.Number)
	}
	return numbers
}
