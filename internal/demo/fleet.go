package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/sink/archive"
)

// fleet holds the demo's workers and the state that their events report.
type fleet struct {
	archive  string // the folder
	kinesis  *kinesis.Client
	dynamoDB *dynamodb.Client
	logger   *slog.Logger
	news     func(format string, args ...any)

	delivered atomic.Int64
	takeovers atomic.Int64

	committed atomic.Int64 // records in commits, by the workers' events

	mu struct {
		sync.Mutex
		workers []*fleetWorker
	}
}

// fleetWorker is one worker of a fleet. The fleet's mutex guards holds and gone.
type fleetWorker struct {
	name   string
	worker *consumer.Worker
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
	holds  map[runnel.ShardID]int64 // the shards, and records delivered and not yet committed
	gone   bool
}

// Short times, so that a take-over can be watched.
const (
	failover    = 2 * time.Second
	commitEvery = time.Second
)

// start adds a worker to the fleet and runs it.
func (f *fleet) start(ctx context.Context) error {
	_, err := f.run(ctx, false)
	return err
}

func (f *fleet) run(ctx context.Context, once bool) (*fleetWorker, error) {
	f.mu.Lock()
	name := fmt.Sprintf("worker-%d", len(f.mu.workers)+1)
	f.mu.Unlock()
	target, err := archive.New(archive.Config{
		Dir: f.archive, Every: commitEvery, WriterID: name,
	})
	if err != nil {
		return nil, err
	}
	w := &fleetWorker{name: name, done: make(chan struct{}), holds: map[runnel.ShardID]int64{}}
	w.worker, err = consumer.New(consumer.Config{
		Stream: stream, App: stream + "-archive", WorkerID: name,
		Kinesis: f.kinesis, DynamoDB: f.dynamoDB,
		Sink: target, Failover: failover, Once: once,
		Logger: f.logger, OnEvent: func(e consumer.Event) { f.observe(w, e) },
	})
	if err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	f.mu.Lock()
	f.mu.workers = append(f.mu.workers, w)
	f.mu.Unlock()
	go func() {
		defer close(w.done)
		if err := w.worker.Run(ctx); err != nil && ctx.Err() == nil {
			w.err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	return w, nil
}

func (f *fleet) observe(w *fleetWorker, e consumer.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Kind {
	case consumer.EventDelivered:
		f.delivered.Add(int64(e.Records))
		w.holds[e.ShardID] += int64(e.Records)
	case consumer.EventCommitted:
		f.committed.Add(w.holds[e.ShardID])
		w.holds[e.ShardID] = 0
	case consumer.EventLeaseExpired, consumer.EventLeaseStolen:
		if f.isGone(e.Other) {
			f.takeovers.Add(1)
			f.news("taken    %s, by %s from %s", e.ShardID, e.Worker, e.Other)
		}
		w.holds[e.ShardID] = 0
	case consumer.EventLeaseTaken, consumer.EventShardStarted, consumer.EventMoved:
		w.holds[e.ShardID] = 0
	case consumer.EventLeaseLost, consumer.EventLeaseReleased, consumer.EventShardEnded:
		delete(w.holds, e.ShardID)
	}
}

// isGone reports whether the worker was lost. The caller holds the mutex.
func (f *fleet) isGone(name string) bool {
	return slices.ContainsFunc(f.mu.workers, func(w *fleetWorker) bool {
		return w.name == name && w.gone
	})
}

// busy reports whether a worker holds a shard.
func (f *fleet) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.mu.workers, func(w *fleetWorker) bool { return len(w.holds) > 0 })
}

// lose stops the worker that holds the most shards as a crash would.
func (f *fleet) lose() (name, shards string) {
	f.mu.Lock()
	victim := slices.MaxFunc(f.mu.workers, func(a, b *fleetWorker) int {
		return len(a.holds) - len(b.holds)
	})
	victim.gone = true
	shards = short(victim.holds)
	f.mu.Unlock()
	victim.cancel(seam.ErrKilled)
	<-victim.done
	return victim.name, shards
}

// drain runs one more worker until all workers together have archived everything in the stream.
func (f *fleet) drain(ctx context.Context) error {
	w, err := f.run(ctx, true)
	if err != nil {
		return err
	}
	<-w.done
	return w.err
}

// stop ends every worker.
func (f *fleet) stop() error {
	var errs []error
	for _, w := range f.list() {
		w.cancel(exit.ErrStop)
	}
	for _, w := range f.list() {
		<-w.done
		errs = append(errs, w.err)
	}
	return errors.Join(errs...)
}

func (f *fleet) list() []*fleetWorker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.workers)
}

// lines lists the shards that each worker holds.
func (f *fleet) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, w := range f.mu.workers {
		state := "● " + short(w.holds)
		if w.gone {
			state = "✕ gone"
		}
		lines = append(lines, fmt.Sprintf("%-9s%s", w.name, state))
	}
	return lines
}

// short lists shards by their numbers, as "shards 0 3 7".
func short(shards map[runnel.ShardID]int64) string {
	var numbers []string
	for shard := range shards {
		numbers = append(numbers, fmt.Sprintf("%3s", shardid.Short(string(shard))))
	}
	if len(numbers) == 0 {
		return "no shard"
	}
	slices.Sort(numbers)
	return "shards " + strings.Join(strings.Fields(strings.Join(numbers, " ")), " ")
}
