package main

import (
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestWays checks that every way but the KPL puts all events, and that the ordered ways keep the
// order of each key.
func TestWays(t *testing.T) {
	var events []event
	for i := range 120 {
		events = append(events, event{key: string(rune('a' + i%3)), data: []byte{byte(i)}})
	}
	for _, w := range ways(Config{Only: regexp.MustCompile("")}) {
		if w.name == wayKPL {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.WithStream(loadStream, 1))
			api := kinesis.NewFromConfig(server.AWSConfig())
			put, err := putterOf(w.name, api)
			if err != nil {
				t.Fatal(err)
			}
			got, err := put(t.Context(), loadStream, events, time.Minute)
			if err != nil || got.Records != len(events) || got.Failed != 0 {
				t.Fatalf("%+v, %v", got, err)
			}
			read := readAll(t, api)
			if len(read) != len(events) {
				t.Fatalf("%d records, want %d", len(read), len(events))
			}
			last := map[string]int{}
			for _, e := range read {
				number := int(e.data[0]) + 1
				if number <= last[e.key] && w.name != wayNone {
					t.Errorf("key %s: %d after %d", e.key, number, last[e.key])
				}
				last[e.key] = number
			}
		})
	}
}

// readAll reads the stream's only shard and opens aggregates.
func readAll(t *testing.T, api *kinesis.Client) (events []event) {
	t.Helper()
	at, err := api.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String(loadStream), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := api.GetRecords(t.Context(),
		&kinesis.GetRecordsInput{ShardIterator: at.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		records, ok := aggregate.Decode(nil, r.Data)
		if !ok {
			records = []aggregate.Record{{PartitionKey: *r.PartitionKey, Data: r.Data}}
		}
		for _, u := range records {
			events = append(events, event{key: u.PartitionKey, data: u.Data})
		}
	}
	return events
}

// TestCallsFor checks that the number of calls is shown only for a client that has put all events.
func TestCallsFor(t *testing.T) {
	in := input{records: 100}
	f := figures{calls: 8}
	f.Records = 200
	if got := callsFor(in)(f); got != 4 {
		t.Errorf("8 calls for the records twice: %v for them once", got)
	}
	f.Records = 150
	if got, ok := callsFor(in)(f), true; shown(got, ok) != "–" {
		t.Errorf("a client that had not put all: %v", got)
	}
}
