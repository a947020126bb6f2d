package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// 50 connections put through one proxy while the stream behind throttles, loses answers and
// fails records: every key's records are there, in the order of their connection, and doubles
// are no more than the attempts without an answer.
func TestOrderUnderFaults(t *testing.T) {
	const connections = 50
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 4), runneltest.WithFaults(
		fmt.Sprintf("seed=%d PutRecords:lose-answer@3 PutRecords:lose-answer%%5 PutRecords:throttle%%5 "+
			"PutRecords:fail-record=1/10 PutRecords:throttle-record=1/10%%20 "+
			"orders:reshard=150ms@1-6", seed%1_000_000)))
	s := serve(t, server.Kinesis(), func(c *proxy.Config) {
		c.Producer.RetryMin, c.Producer.RetryMax = time.Millisecond, 20*time.Millisecond
	})
	requests := 6 * soak()
	t.Logf("soak: 1 seed, %d operations", connections*requests)
	var putting sync.WaitGroup
	failed := make(chan error, connections)
	for c := range connections {
		client := s.client(t)
		random := rand.New(rand.NewPCG(seed, uint64(c)))
		putting.Go(func() {
			if err := putInOrder(t.Context(), client, c, requests, random); err != nil {
				failed <- err
			}
		})
	}
	putting.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	doubles := checkOrder(t, readAll(t, server.Kinesis(), "orders"), connections, requests)
	_, page := s.get(t, "/metrics")
	if unknown := sample(t, page, "attempts_unknown_total"); doubles > unknown || unknown == 0 {
		t.Errorf("%d doubles, %d attempts without an answer", doubles, unknown)
	}
}

// putInOrder puts requests one behind the other: of a connection's two keys, and of one that it
// shares with nobody's order, so that lanes are long and short.
func putInOrder(
	ctx context.Context, client *kinesis.Client, connection, requests int, random *rand.Rand,
) error {
	next := [2]int{}
	for range requests {
		var records []types.PutRecordsRequestEntry
		for range 1 + random.IntN(30) {
			k := random.IntN(2)
			next[k]++
			records = append(records,
				record(fmt.Sprintf("%d-%d", connection, k), strconv.Itoa(next[k])))
		}
		// The last of a request goes alone: PutRecord is in the same order.
		last := records[len(records)-1]
		out, err := client.PutRecords(ctx, &kinesis.PutRecordsInput{
			StreamName: aws.String("orders"),
			Records:    append(records[:len(records)-1:len(records)-1], record("shared", "x")),
		})
		if err != nil {
			return err
		}
		if *out.FailedRecordCount != 0 {
			return errors.New("a record failed, though nothing is given up")
		}
		if _, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: last.PartitionKey, Data: last.Data,
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkOrder checks that the first occurrences of a key's records are 1, 2, 3, …, and returns
// how many doubles there are.
func checkOrder(t *testing.T, shards [][]types.Record, connections, requests int) (doubles int) {
	t.Helper()
	last := map[string]int{}
	shared := 0
	for _, shard := range shards {
		for _, r := range shard {
			key := *r.PartitionKey
			if key == "shared" {
				shared++
				continue
			}
			n, err := strconv.Atoi(string(r.Data))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case n == last[key]+1:
				last[key] = n
			case n <= last[key]:
				doubles++
			default:
				t.Fatalf("key %s: record %d comes after %d", key, n, last[key])
			}
		}
	}
	if want := connections * requests; shared < want {
		t.Errorf("%d of %d records of the shared key are there", shared, want)
	}
	doubles += shared - connections*requests
	if len(last) != 2*connections {
		t.Errorf("%d keys are there, want %d", len(last), 2*connections)
	}
	return doubles
}

// sample reads a metric of the stream orders.
func sample(t *testing.T, page, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(page, "runnel_proxy_stream_"+name+`{stream="orders"} `)
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(value)
	if !ok || err != nil {
		t.Fatalf("metric %s: %q", name, value)
	}
	return n
}
