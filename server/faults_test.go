package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel/runneltest"
)

// client sees a server's faults as they are: it never retries.
type client struct {
	*kinesis.Client
	tables *dynamodb.Client
	server *runneltest.Server
}

// inBubble runs a test in virtual time against a server with those faults and a stream "s" of
// one shard.
func inBubble(t *testing.T, faults string, test func(t *testing.T, c client)) {
	t.Run(faults, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", 1),
				runneltest.WithFaults(faults))
			once := func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} }
			test(t, client{
				Client: kinesis.NewFromConfig(server.AWSConfig(), once), server: server,
				tables: dynamodb.NewFromConfig(server.AWSConfig(), func(o *dynamodb.Options) {
					o.Retryer = aws.NopRetryer{}
				}),
			})
		})
	})
}

// put sends the texts as one PutRecords.
func (c client) put(ctx context.Context, texts ...string) (*kinesis.PutRecordsOutput, error) {
	in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
	for _, text := range texts {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String("k"), Data: []byte(text),
		})
	}
	return c.PutRecords(ctx, in)
}

// stored reads the stream.
func (c client) stored(t *testing.T) []string {
	t.Helper()
	iterator, err := c.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{
		ShardIterator: iterator.ShardIterator,
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, record := range got.Records {
		texts = append(texts, string(record.Data))
	}
	return texts
}

func (c client) wantStored(t *testing.T, want ...string) {
	t.Helper()
	if got := c.stored(t); !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
}

// code is the API error's name and HTTP status; "cut" if no answer came.
func code(err error) string {
	var api smithy.APIError
	var answer *awshttp.ResponseError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &api) && errors.As(err, &answer):
		return fmt.Sprintf("%d %s", answer.HTTPStatusCode(), api.ErrorCode())
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	default:
		return "cut"
	}
}

func (c client) wantPut(t *testing.T, text, want string) {
	t.Helper()
	if _, err := c.put(t.Context(), text); code(err) != want {
		t.Errorf("put %s: %v, want %s", text, err, want)
	}
}

func TestRefusals(t *testing.T) {
	for fault, want := range map[string]string{
		"error-500":    "500 InternalFailure",
		"error-503":    "503 ServiceUnavailable",
		"throttle":     "400 ProvisionedThroughputExceededException",
		"lose-request": "cut",
	} {
		inBubble(t, "PutRecords:"+fault+"@2", func(t *testing.T, c client) {
			c.wantPut(t, "one", "ok")
			c.wantPut(t, "two", want)
			c.wantPut(t, "three", "ok")
			c.wantStored(t, "one", "three")
			if got := c.server.FaultCounts()["PutRecords:"+fault]; got != 1 {
				t.Errorf("%d faults, want 1", got)
			}
		})
	}
}

func TestRefusalsOfTheOthers(t *testing.T) {
	inBubble(t, "*:throttle", func(t *testing.T, c client) {
		_, err := c.ListStreams(t.Context(), &kinesis.ListStreamsInput{})
		if got := code(err); got != "400 LimitExceededException" {
			t.Errorf("ListStreams: %v", err)
		}
		_, err = c.tables.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if got := code(err); got != "400 ThrottlingException" {
			t.Errorf("ListTables: %v", err)
		}
		_, err = c.tables.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("tab")})
		if got := code(err); got != "400 ProvisionedThroughputExceededException" {
			t.Errorf("Scan: %v", err)
		}
	})
	inBubble(t, "dynamodb.*:error-500", func(t *testing.T, c client) {
		_, err := c.tables.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if got := code(err); got != "500 InternalServerError" {
			t.Errorf("ListTables: %v", err)
		}
		c.wantPut(t, "one", "ok")
	})
}

func TestLoseAnswer(t *testing.T) {
	inBubble(t, "PutRecords:lose-answer@2", func(t *testing.T, c client) {
		c.wantPut(t, "one", "ok")
		c.wantPut(t, "two", "cut")
		c.wantStored(t, "one", "two")
	})
}

func TestDelay(t *testing.T) {
	inBubble(t, "PutRecords:delay=3s@1-2", func(t *testing.T, c client) {
		began := time.Now()
		c.wantPut(t, "one", "ok")
		if passed := time.Since(began); passed != 3*time.Second {
			t.Errorf("it took %v, want 3s", passed)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.put(ctx, "two"); code(err) != "timeout" {
			t.Errorf("put: %v, want a time-out", err)
		}
		time.Sleep(time.Minute)
		c.wantStored(t, "one") // the client went before the call began
	})
}

// TestCommitLate: the batch arrives after its own retry.
func TestCommitLate(t *testing.T) {
	inBubble(t, "PutRecords:commit-late=5s@1", func(t *testing.T, c client) {
		began := time.Now()
		c.wantPut(t, "one", "cut")
		if passed := time.Since(began); passed != 0 {
			t.Errorf("cut after %v, want at once", passed)
		}
		c.wantPut(t, "two", "ok")
		c.wantStored(t, "two")
		time.Sleep(5*time.Second - 1)
		c.wantStored(t, "two")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.wantStored(t, "two", "one")
	})
}

func TestHang(t *testing.T) {
	inBubble(t, "PutRecords:hang=5s@1-2", func(t *testing.T, c client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.put(ctx, "one"); code(err) != "timeout" {
			t.Errorf("put: %v, want a time-out", err)
		}
		c.wantStored(t)
		began := time.Now()
		c.wantPut(t, "two", "cut") // a client with more patience
		if passed := time.Since(began); passed != 5*time.Second {
			t.Errorf("cut after %v, want 5s", passed)
		}
		c.wantStored(t, "one", "two")
	})
}

// TestCloseHurriesLateCommits: the end of the server neither waits for them nor loses them.
func TestCloseHurriesLateCommits(t *testing.T) {
	inBubble(t, "PutRecords:commit-late=10h@1", func(t *testing.T, c client) {
		c.wantPut(t, "one", "cut")
		began := time.Now()
		if err := c.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if passed := time.Since(began); passed > time.Minute {
			t.Errorf("the restart took %v", passed)
		}
		c.wantStored(t, "one")
	})
}

// TestEndHurriesDelays: calls that wait on purpose are executed when the server ends. Clients that
// still wait for an answer get one.
func TestEndHurriesDelays(t *testing.T) {
	for fault, want := range map[string]string{"delay": "ok", "hang": "cut"} {
		inBubble(t, "PutRecords:"+fault+"=1h@1", func(t *testing.T, c client) {
			answered := make(chan error, 1)
			go func() {
				_, err := c.put(t.Context(), "one")
				answered <- err
			}()
			synctest.Wait()
			began := time.Now()
			if err := c.server.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if passed := time.Since(began); passed > 9*time.Second {
				t.Errorf("the end took %v", passed)
			}
			if err := <-answered; code(err) != want {
				t.Errorf("put: %v, want %s", err, want)
			}
		})
	}
}

func TestFailRecords(t *testing.T) {
	inBubble(t, "PutRecords:fail-record=2@1 PutRecords:throttle-record=3@1",
		func(t *testing.T, c client) {
			out, err := c.put(t.Context(), "one", "two", "three", "four")
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, entry := range out.Records {
				codes = append(codes, aws.ToString(entry.ErrorCode))
			}
			want := []string{"", "InternalFailure", "ProvisionedThroughputExceededException", ""}
			if !slices.Equal(codes, want) || *out.FailedRecordCount != 2 {
				t.Errorf("%d failed: %q, want %q", *out.FailedRecordCount, codes, want)
			}
			c.wantStored(t, "one", "four")
		})
}

func TestExpireIterator(t *testing.T) {
	inBubble(t, "GetRecords:expire-iterator@2", func(t *testing.T, c client) {
		c.wantPut(t, "one", "ok")
		c.wantStored(t, "one")
		iterator, err := c.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
			StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		in := &kinesis.GetRecordsInput{ShardIterator: iterator.ShardIterator}
		var expired *types.ExpiredIteratorException
		if _, err = c.GetRecords(t.Context(), in); !errors.As(err, &expired) {
			t.Errorf("%v, want ExpiredIteratorException", err)
		}
		if _, err = c.GetRecords(t.Context(), in); err != nil {
			t.Errorf("the same iterator again: %v", err)
		}
	})
}

// TestLostAnswerOverLoopback: a real connection ends without an answer, and a new one is made.
func TestLostAnswerOverLoopback(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("s", 1),
		runneltest.WithFaults("PutRecords:lose-answer@1"))
	c := client{Client: kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
	}), server: server}
	c.wantPut(t, "one", "cut")
	c.wantPut(t, "two", "ok")
	c.wantStored(t, "one", "two")
	if answer, err := http.Get(server.Endpoint() + "/health"); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("health: %s", answer.Status)
	}
}
