// Package bench measures runnel through its public packages. Each figure is compared with a
// physical limit of the same machine in the same run. README.md has the figures and explains them.
package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// The figures are for calls of 500 records of 1 KiB, eight calls in flight.
const (
	recordBytes    = 1 << 10
	recordsPerCall = 500
	inFlight       = 8
	shards         = 16
)

// BenchmarkPutRecords puts through HTTP, each answer synced. "prepared" sends prepared bodies, so
// it measures the server; "sdk" is a program with the AWS SDK, on the same two cores. x-disk is the
// payload's rate divided by the rate of a raw sequential write and sync, of the same bytes in calls
// of the same size to the same disk.
func BenchmarkPutRecords(b *testing.B) {
	b.Run("prepared", func(b *testing.B) {
		server := startServer(b)
		body := putBody(b)
		measure(b, func(ctx context.Context) error {
			return post(ctx, server, "PutRecords", body, io.Discard)
		})
	})
	b.Run("sdk", func(b *testing.B) {
		server := startServer(b)
		client := kinesis.NewFromConfig(server.AWSConfig())
		input := putInput(b)
		measure(b, func(ctx context.Context) error {
			_, err := client.PutRecords(ctx, input)
			return err
		})
	})
}

// BenchmarkGetRecords reads the records back with prepared requests, one loop for each shard.
func BenchmarkGetRecords(b *testing.B) {
	server := startServer(b)
	body := putBody(b)
	calls := max(b.N, 16)
	run(b, calls, func(ctx context.Context) error {
		return post(ctx, server, "PutRecords", body, io.Discard)
	})
	b.SetBytes(recordBytes * recordsPerCall)
	b.ResetTimer()
	var read atomic.Int64
	var readers sync.WaitGroup
	for shard := range shards {
		readers.Go(func() {
			if err := drain(b.Context(), server, shard, &read); err != nil {
				b.Error(err)
			}
		})
	}
	readers.Wait()
	b.StopTimer()
	if want := int64(calls * recordsPerCall); read.Load() != want {
		b.Fatalf("read %d records, %d were put", read.Load(), want)
	}
	report(b, float64(read.Load()))
}

func startServer(b *testing.B) *runneltest.Server {
	return runneltest.NewServer(b, runneltest.WithDir(b.TempDir()),
		runneltest.WithStream("bench", shards))
}

// measure makes b.N calls, inFlight at a time, and reports their rate and its ratio to the disk's.
func measure(b *testing.B, call func(context.Context) error) {
	b.SetBytes(recordBytes * recordsPerCall)
	b.ResetTimer()
	run(b, b.N, call)
	b.StopTimer()
	report(b, float64(b.N*recordsPerCall))
}

func report(b *testing.B, records float64) {
	rate := records / b.Elapsed().Seconds()
	b.ReportMetric(rate, "records/s")
	b.ReportMetric(rate*recordBytes/diskRate(b, int(records)/recordsPerCall), "x-disk")
}

func run(b *testing.B, calls int, call func(context.Context) error) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for next.Add(1) <= int64(calls) {
				if err := call(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// diskRate writes chunks of a call's payload one after the other, each synced, as many as calls. It
// returns bytes a second.
func diskRate(b *testing.B, calls int) float64 {
	file, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	chunk := make([]byte, recordBytes*recordsPerCall)
	_, _ = rand.Read(chunk)
	calls = min(max(calls, 50), 1000)
	start := time.Now()
	for range calls {
		if _, err := file.Write(chunk); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(calls*len(chunk)) / time.Since(start).Seconds()
}

func putInput(b *testing.B) *kinesis.PutRecordsInput {
	input := &kinesis.PutRecordsInput{StreamName: aws.String("bench")}
	for i := range recordsPerCall {
		data := make([]byte, recordBytes)
		if _, err := rand.Read(data); err != nil {
			b.Fatal(err)
		}
		input.Records = append(input.Records, types.PutRecordsRequestEntry{
			Data: data, PartitionKey: aws.String(fmt.Sprintf("key-%d", i)),
		})
	}
	return input
}

func putBody(b *testing.B) []byte {
	type entry struct {
		Data         []byte
		PartitionKey string
	}
	var body struct {
		StreamName string
		Records    []entry
	}
	input := putInput(b)
	body.StreamName = *input.StreamName
	for _, record := range input.Records {
		body.Records = append(body.Records, entry{Data: record.Data, PartitionKey: *record.PartitionKey})
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	return encoded
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func post(
	ctx context.Context, server *runneltest.Server, operation string, body []byte, into io.Writer,
) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.Endpoint(),
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(into, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", operation, response.Status)
	}
	return nil
}

// drain reads a shard to its end and counts its records without decoding their data.
func drain(
	ctx context.Context, server *runneltest.Server, shard int, read *atomic.Int64,
) error {
	var iterator struct{ ShardIterator, NextShardIterator string }
	var answer bytes.Buffer
	body := fmt.Sprintf(`{"StreamName":"bench","ShardId":"shardId-%012d",`+
		`"ShardIteratorType":"TRIM_HORIZON"}`, shard)
	if err := post(ctx, server, "GetShardIterator", []byte(body), &answer); err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Bytes(), &iterator); err != nil {
		return err
	}
	for {
		answer.Reset()
		body := fmt.Sprintf(`{"ShardIterator":%q}`, iterator.ShardIterator)
		if err := post(ctx, server, "GetRecords", []byte(body), &answer); err != nil {
			return err
		}
		records := int64(bytes.Count(answer.Bytes(), []byte(`"PartitionKey"`)))
		if records == 0 {
			return nil
		}
		read.Add(records)
		_, rest, more := bytes.Cut(answer.Bytes(), []byte(`"NextShardIterator":"`))
		if !more {
			return nil
		}
		iterator.ShardIterator = string(rest[:bytes.IndexByte(rest, '"')])
	}
}
