package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/call"
)

// The stream of the subscribers has as many consumers as a stream may have.
const (
	subscribed = "subscribed"
	consumers  = 20
	subShards  = 16
	subARN     = "arn:aws:kinesis:us-east-1:000000000000:stream/" + subscribed
)

// fillSubscribed registers the consumers, and puts 48 records of 0.9 MB over the shards.
func fillSubscribed(ctx context.Context, t *target) error {
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 900_000))
	for i := range 48 {
		err := t.call(ctx, t.client, "PutRecord", fmt.Appendf(nil,
			`{"StreamName":%q,"PartitionKey":"key-%d","Data":"%s"}`, subscribed, i, data))
		if err != nil {
			return err
		}
	}
	for i := range consumers {
		err := t.call(ctx, t.client, "RegisterStreamConsumer", fmt.Appendf(nil,
			`{"StreamARN":%q,"ConsumerName":"consumer-%d"}`, subARN, i))
		for deadline := time.Now().Add(10 * time.Second); err != nil; {
			if time.Now().After(deadline) {
				return err
			}
			time.Sleep(200 * time.Millisecond) // five of them may be CREATING
			err = t.call(ctx, t.client, "RegisterStreamConsumer", fmt.Appendf(nil,
				`{"StreamARN":%q,"ConsumerName":"consumer-%d"}`, subARN, i))
		}
	}
	time.Sleep(2 * time.Second) // until they are ACTIVE
	return nil
}

// subscribers subscribe each consumer to each shard, and never read.
func subscribers(ctx context.Context, t *target) {
	answer, err := call.Send(ctx, t.client, t.address, "ListStreamConsumers",
		fmt.Appendf(nil, `{"StreamARN":%q,"MaxResults":100}`, subARN))
	if err != nil {
		panic(err)
	}
	var got struct {
		Consumers []struct{ ConsumerARN, ConsumerStatus string }
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		panic(err)
	}
	for _, consumer := range got.Consumers {
		for shard := range subShards {
			conn, err := t.dial(ctx)
			if err != nil {
				continue
			}
			body := fmt.Sprintf(`{"ConsumerARN":%q,"ShardId":"shardId-%012d",`+
				`"StartingPosition":{"Type":"TRIM_HORIZON"}}`, consumer.ConsumerARN, shard)
			_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s",
				strings.Replace(head, "PutRecords", "SubscribeToShard", 1), len(body), body)
		}
	}
}
