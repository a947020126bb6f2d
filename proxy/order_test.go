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

// 50 connections put through one proxy while upstream throttles, loses answers and fails records.
// All records of each key are in the stream, in the order of their connection, and the duplicates
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
	duplicates := checkOrder(t, readAll(t, server.Kinesis(), "orders"), connections, requests)
	_, page := s.get(t, "/metrics")
	if unknown := sample(t, page, "attempts_unknown_total"); duplicates > unknown || unknown == 0 {
		t.Errorf("%d duplicates, %d attempts without an answer", duplicates, unknown)
	}
}

// putInOrder puts one request after the other, with records of the connection's own two keys. A
// further key, shared by all connections, gets a long queue; its order is not checked.
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
		// The last record goes by PutRecord, which is in the same order.
		last := records[len(records)-1]
		out, err := client.PutRecords(ctx, &kinesis.PutRecordsInput{
			StreamName: aws.String("orders"),
			Records:    append(records[:len(records)-1:len(records)-1], record("shared", "x")),
		})
		if err != nil {
			return err
		}
		if *out.FailedRecordCount != 0 {
			return errors.New("a record failed, though no record is given up")
		}
		if _, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: last.PartitionKey, Data: last.Data,
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkOrder checks that the first occurrences of a key's records are 1, 2, 3, …, and returns the
// number of duplicates.
func checkOrder(t *testing.T, shards [][]types.Record, connections, requests int) (duplicates int) {
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
				duplicates++
			default:
				t.Fatalf("key %s: record %d comes after %d", key, n, last[key])
			}
		}
	}
	if want := connections * requests; shared < want {
		t.Errorf("the stream has %d of %d records of the shared key", shared, want)
	}
	duplicates += shared - connections*requests
	if len(last) != 2*connections {
		t.Errorf("the stream has %d keys, want %d", len(last), 2*connections)
	}
	return duplicates
}

// sample returns a metric of the stream orders.
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
