package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

// fullAnswers is a server. Slow readers hold its memory for answers until release.
type fullAnswers struct {
	*Server
	release func()
}

// noCut is the connection of a reader that is not cut off.
type noCut struct{}

func (noCut) Cut() {}

func openFullAnswers(t *testing.T, streams ...StreamSpec) *fullAnswers {
	t.Helper()
	s, err := Open(t.Context(), Config{
		Memory: true, Streams: streams, StreamDelay: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &fullAnswers{Server: s}
}

// fill makes others hold all the memory for answers but for so many bytes.
func (s *fullAnswers) fill(free int) {
	const all = 1 << 20
	s.answers = budget.New(all, 0)
	held := new(budget.Share)
	s.answers.Open(held, noCut{})
	held.Claim(all - free)
	s.release = held.Release
}

// ask makes a call, as "Kinesis_20131202.PutRecords".
func (s *fullAnswers) ask(t *testing.T, target, body string) (status int, answer string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Host = "localhost"
	version := "1.1"
	if strings.HasPrefix(target, "Dynamo") {
		version = "1.0"
	}
	r.Header.Set("Content-Type", "application/x-amz-json-"+version)
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (s *fullAnswers) must(t *testing.T, target, body string) string {
	t.Helper()
	status, answer := s.ask(t, target, body)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %.300s", target, status, answer)
	}
	return answer
}

// stored returns the number of records of the stream "full", which has one shard.
func (s *fullAnswers) stored(t *testing.T) int {
	t.Helper()
	var from struct{ ShardIterator string }
	if err := json.Unmarshal([]byte(s.must(t, "Kinesis_20131202.GetShardIterator",
		`{"StreamName":"full","ShardId":"shardId-000000000000",
		"ShardIteratorType":"TRIM_HORIZON"}`)), &from); err != nil {
		t.Fatal(err)
	}
	return strings.Count(s.must(t, "Kinesis_20131202.GetRecords",
		fmt.Sprintf(`{"ShardIterator":%q}`, from.ShardIterator)), `"SequenceNumber"`)
}

// Slow readers of other answers do not delay puts, however long the answer is. The answer says that
// the records are stored: as throttled, they would be put again.
func TestPutRecordsDoesNotWaitForSlowReaders(t *testing.T) {
	s := openFullAnswers(t, StreamSpec{Name: "full", Shards: 1})
	s.fill(0)
	const records = 500
	answer := s.must(t, "Kinesis_20131202.PutRecords", `{"StreamName":"full","Records":[`+
		strings.Repeat(`{"Data":"","PartitionKey":"a"},`, records-1)+
		`{"Data":"","PartitionKey":"a"}]}`)
	if n := strings.Count(answer, `"SequenceNumber"`); n != records || len(answer) < budget.Free {
		t.Errorf("the answer has %d records and %d bytes", n, len(answer))
	}
	s.release()
	if used := s.answers.Used(); used != 0 {
		t.Errorf("%d bytes of answers are in use at the end", used)
	}
	s.answers = budget.New(64<<20, 0) // for all records in one answer
	if n := s.stored(t); n != records {
		t.Errorf("%d records are stored, want %d", n, records)
	}
}

const fullTable = `{"TableName":"full","BillingMode":"PAY_PER_REQUEST",
	"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
	"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`

// The answer to a write is sent even if it is longer than the memory that the write waited for.
// Every answer here is one byte longer.
func TestTheAnswerToAWriteIsNeverRefused(t *testing.T) {
	const dynamo = "DynamoDB_20120810."
	s := openFullAnswers(t)
	s.must(t, dynamo+"CreateTable", fullTable)
	s.must(t, dynamo+"PutItem", `{"TableName":"full","Item":{"k":{"S":"a"},"c":{"N":"1"},
		"pad":{"S":"`+strings.Repeat("x", 100_000)+`"}}}`)
	update := `{"TableName":"full","Key":{"k":{"S":"a"}},"UpdateExpression":"ADD c :one",
		"ExpressionAttributeValues":{":one":{"N":"1"}},"ReturnValues":"ALL_NEW"}`
	long := len(s.must(t, dynamo+"UpdateItem", update))
	s.fill(long - 1)
	if got := len(s.must(t, dynamo+"UpdateItem", update)); got != long {
		t.Errorf("the answer has %d bytes, want %d", got, long)
	}
	get := `{"TableName":"full","Key":{"k":{"S":"a"}}}`
	s.fill(0)
	status, answer := s.ask(t, dynamo+"GetItem", get)
	if status != http.StatusBadRequest || !strings.Contains(answer, "slow readers") {
		t.Errorf("a read without memory: %d %.100s", status, answer)
	}
	s.release()
}

// A write that returns a long item waits for the memory of its answer. It was made, so it is not
// answered as throttled: an SDK would make it again.
func TestWritesThatReturnItemsWaitForTheMemoryOfTheirAnswers(t *testing.T) {
	const dynamo = "DynamoDB_20120810."
	key := `"TableName":"full","Key":{"k":{"S":"a"}}`
	put := `{"TableName":"full","Item":{"k":{"S":"a"},"c":{"N":"1"},"pad":{"S":"` +
		strings.Repeat("x", 100_000) + `"}}`
	refused := `"ConditionExpression":"attribute_not_exists(k)",` +
		`"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`
	for name, of := range map[string]struct {
		operation, body string
		status          int
	}{
		"UpdateItem": {"UpdateItem", key + `,"UpdateExpression":"ADD c :one",
			"ExpressionAttributeValues":{":one":{"N":"1"}},"ReturnValues":"ALL_NEW"}`, 200},
		"PutItem":    {"PutItem", strings.TrimPrefix(put, "{") + `,"ReturnValues":"ALL_OLD"}`, 200},
		"DeleteItem": {"DeleteItem", key + `,"ReturnValues":"ALL_OLD"}`, 200},
		"refused":    {"DeleteItem", key + `,` + refused + `}`, 400},
		"transaction": {"TransactWriteItems", `"TransactItems":[{"Delete":{` + key + `,` + refused +
			`}}]}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := openFullAnswers(t)
			s.must(t, dynamo+"CreateTable", fullTable)
			s.must(t, dynamo+"PutItem", put+`}`)
			s.fill(0)
			type result struct {
				status int
				answer string
			}
			answered := make(chan result, 1)
			go func() {
				status, answer := s.ask(t, dynamo+of.operation, "{"+of.body)
				answered <- result{status, answer}
			}()
			select {
			case got := <-answered:
				t.Fatalf("while others hold the memory: %d %.300s", got.status, got.answer)
			case <-time.After(100 * time.Millisecond):
			}
			s.release()
			got := <-answered
			if got.status != of.status || len(got.answer) < 100_000 {
				t.Errorf("with memory: %d with %d bytes: %.300s", got.status, len(got.answer), got.answer)
			}
			if used := s.answers.Used(); used != 0 {
				t.Errorf("%d bytes of answers are in use at the end", used)
			}
		})
	}
}
