//go:build linux

package processes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/awsclient"
)

// recordWorker is the argument that makes the test binary a worker of TestRecordKills. Its other
// arguments are the endpoint, the worker's name, the log and the longest time of a record.
const recordWorker = "test-record-worker"

func init() { programs[recordWorker] = runRecordWorker }

const (
	recordFailover = time.Second
	recordParallel = 8
	gateKey        = "gate" // its record is unfinished until the log's gate is open
)

// recordLog is the file to which all workers append. The kernel keeps what a killed process wrote,
// and appends each line as a whole.
type recordLog struct {
	file   *os.File
	worker string
	slow   time.Duration
}

func runRecordWorker(args []string) error {
	slow, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	file, err := os.OpenFile(args[2], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	l := &recordLog{file: file, worker: args[1], slow: slow}
	ctx := context.Background()
	cfg, err := awsclient.Load(ctx, awsclient.Options{Endpoint: args[0]})
	if err != nil {
		return err
	}
	worker, err := consumer.New(consumer.Config{
		Stream: "events", App: "records", WorkerID: l.worker,
		Kinesis: kinesis.NewFromConfig(cfg), DynamoDB: dynamodb.NewFromConfig(cfg),
		Record: l.handle, Parallel: recordParallel,
		Failover: recordFailover, CheckpointInterval: recordFailover / 10,
		OnEvent: l.event,
	})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// handle logs when a record begins and when it is done. In between it takes a while, and fails now
// and then.
func (l *recordLog) handle(ctx context.Context, r *nouns.Record) error {
	l.record("begin", r)
	for r.PartitionKey == gateKey && !isOpen(l.file.Name()) {
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if l.slow > 0 {
		if rand.IntN(100) == 0 { //nolint:gosec // a test
			return errors.New("a failure of the test")
		}
		if err := wait(ctx, rand.N(l.slow)); err != nil { //nolint:gosec // a test
			return err
		}
	}
	l.record("done", r)
	return nil
}

// isOpen reports whether the test has opened the gate of a log.
func isOpen(log string) bool {
	_, err := os.Stat(log + ".open")
	return err == nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *recordLog) record(what string, r *nouns.Record) {
	l.write("%s %s %s %s %d %s %s\n", what, l.worker, r.ShardID, r.Position.Sequence,
		r.Position.Sub, r.PartitionKey, r.Data)
}

func (l *recordLog) event(e consumer.Event) {
	if e.Kind == consumer.EventLeaseLost {
		l.write("lost %s %s\n", l.worker, e.ShardID)
	}
}

// write ends the process if it fails: the test then misses records.
func (l *recordLog) write(format string, args ...any) {
	if _, err := l.file.Write(fmt.Appendf(nil, format, args...)); err != nil {
		panic(err)
	}
}
