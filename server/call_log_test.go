package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/server"
)

// logged collects a server's records of the log, in JSON.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(record)
}

// calls returns the records of calls so far, by operation.
func (l *logged) calls(t *testing.T) map[string]map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]map[string]any{}
	for line := range strings.Lines(l.text.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(line, err)
		}
		if operation := fmt.Sprint(record["operation"]); record["msg"] == "call" {
			if all[operation] != nil {
				t.Errorf("two records of one call: %s", line)
			}
			all[operation] = record
		}
	}
	return all
}

func (l *logged) at(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

// TestCallsAreLogged: at the level of --verbose each call is one record of the log.
func TestCallsAreLogged(t *testing.T) {
	log := new(logged)
	v := serve(t, server.Config{
		Memory: true, Logger: log.at(slog.LevelDebug),
		Faults: "PutRecords:fail-record=2,AddTagsToStream:lose-answer,ListStreams:throttle," +
			"DescribeLimits:delay=20ms",
	})
	ctx := t.Context()
	put, err := v.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	entry := kinesistypes.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: []byte("x")}
	_, err = v.PutRecords(ctx, &kinesis.PutRecordsInput{
		StreamName: aws.String("s"), Records: slices.Repeat([]kinesistypes.PutRecordsRequestEntry{entry}, 3),
	})
	if err != nil {
		t.Fatal(err)
	}
	iterator, err := v.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: put.ShardId, ShardIteratorType: "TRIM_HORIZON",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: iterator.ShardIterator}); err != nil {
		t.Fatal(err)
	}
	for _, call := range []func() error{
		func() error {
			_, err := v.DescribeStream(ctx, &kinesis.DescribeStreamInput{StreamName: aws.String("gone")})
			return err
		},
		func() error { _, err := v.ListStreams(ctx, &kinesis.ListStreamsInput{}); return err },
		func() error {
			_, err := v.AddTagsToStream(ctx, &kinesis.AddTagsToStreamInput{
				StreamName: aws.String("s"), Tags: map[string]string{"a": "b"},
			})
			return err
		},
	} {
		if call() == nil {
			t.Error("a call was not refused")
		}
	}
	if _, err := v.DescribeLimits(ctx, &kinesis.DescribeLimitsInput{}); err != nil {
		t.Fatal(err)
	}
	leases := dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(v.endpoint),
		Credentials: v.Options().Credentials, HTTPClient: v.Options().HTTPClient,
	})
	_, _ = leases.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("leases")})
	got := log.calls(t)
	for deadline := time.Now().Add(10 * time.Second); len(got) < 9 && time.Now().Before(deadline); {
		<-time.After(time.Millisecond) // a record comes after its answer
		got = log.calls(t)
	}
	for operation, want := range map[string]string{
		"PutRecord":        "kinesis s <nil> 200 <nil> 1 <nil>",
		"PutRecords":       "kinesis s <nil> 200 <nil> 3 1",
		"GetShardIterator": "kinesis s <nil> 200 <nil> <nil> <nil>",
		"GetRecords":       "kinesis s <nil> 200 <nil> 3 <nil>",
		"DescribeStream": "kinesis gone <nil> 400 ResourceNotFoundException: Stream gone under " +
			"account 000000000000 not found. <nil> <nil>",
		"ListStreams": "kinesis <nil> <nil> 400 LimitExceededException: Rate exceeded. " +
			"(a fault on request) <nil> <nil>",
		"AddTagsToStream": "kinesis s <nil> 0 <nil> <nil> <nil>",
		"DescribeLimits":  "kinesis <nil> <nil> 200 <nil> <nil> <nil>",
		"DescribeTable": "dynamodb <nil> leases 400 com.amazonaws.dynamodb.v20120810#" +
			"ResourceNotFoundException: Requested resource not found: Table: leases not found " +
			"<nil> <nil>",
	} {
		r := got[operation]
		is := fmt.Sprint(r["service"], " ", r["stream"], " ", r["table"], " ", r["status"], " ",
			r["error"], " ", r["records"], " ", r["refused"])
		if is != want {
			t.Errorf("%s: %s, want %s", operation, is, want)
		}
		delete(got, operation)
		body, _ := r["bytes"].(float64)
		answer, _ := r["answer_bytes"].(float64)
		seconds, _ := r["seconds"].(float64)
		if body < 2 || (answer < 2) != (r["status"] == 0.) || seconds <= 0 {
			t.Errorf("%s: %v bytes, %v bytes of the answer, %v s", operation, body, answer, seconds)
		}
		if operation == "DescribeLimits" && seconds < 0.02 {
			t.Errorf("a delay of 20 ms took %v s", seconds)
		}
		if id, _ := awsmiddleware.GetRequestIDMetadata(put.ResultMetadata); operation == "PutRecord" &&
			(id == "" || r["request"] != id) {
			t.Errorf("the request is %v, want %s", r["request"], id)
		}
	}
	if len(got) > 0 {
		t.Errorf("further calls: %v", got)
	}
}

// TestStreamsAreLogged at their end, with their events and records.
func TestStreamsAreLogged(t *testing.T) {
	log := new(logged)
	v := serve(t, server.Config{Memory: true, StreamDelay: -1, Logger: log.at(slog.LevelDebug)})
	if _, err := v.put(t.Context(), "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	subscribeOnce(t, v.client)
	var record map[string]any
	for deadline := time.Now().Add(10 * time.Second); record == nil && time.Now().Before(deadline); {
		record = log.calls(t)["SubscribeToShard"]
		<-time.After(time.Millisecond)
	}
	if record["stream"] != "s" || record["status"] != 200. || record["records"] != 3. ||
		record["events"].(float64) < 1 || record["answer_bytes"].(float64) < 50 {
		t.Errorf("%v", record)
	}
}

// TestCallsAreNotLogged without --verbose.
func TestCallsAreNotLogged(t *testing.T) {
	log := new(logged)
	v := serve(t, server.Config{Memory: true, Logger: log.at(slog.LevelInfo)})
	if _, err := v.put(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if calls := log.calls(t); len(calls) > 0 {
		t.Errorf("%v", calls)
	}
}

// TestRefusedRequestsAreLogged with their request ids.
func TestRefusedRequestsAreLogged(t *testing.T) {
	log := new(logged)
	v := serve(t, server.Config{Memory: true, Logger: log.at(slog.LevelDebug)})
	answer, err := http.Post(v.endpoint, "text/plain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	log.mu.Lock()
	defer log.mu.Unlock()
	id := answer.Header.Get("X-Amzn-Requestid")
	if got := log.text.String(); id == "" || !strings.Contains(got, `"request":"`+id+`"`) {
		t.Errorf("request %q, and the log %s", id, got)
	}
}
