//go:build linux

package processes_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/lease"
)

// freeze stops a worker that has records in hand until the other worker has taken its shards over
// and has committed the same records. The stopped one then goes on with them, and must add nothing.
// A pause at a random moment seldom meets a worker with records in hand.
func (r *rollupRun) freeze() {
	var frozen *rollupWorker
	clitest.Eventually(r.t, "a worker holds a shard", func() bool {
		at := slices.IndexFunc(r.workers[:], func(w *rollupWorker) bool {
			return len(r.openShardsOf(w)) > 0
		})
		if at >= 0 {
			frozen = r.workers[at]
		}
		return at >= 0
	})
	release := r.hold(frozen)
	time.Sleep(rollupFailover / 2) // the worker reads records, and cannot commit them
	_ = frozen.cmd.Process.Signal(syscall.SIGSTOP)
	before := r.openShardsOf(frozen)
	release()
	clitest.Eventually(r.t, "the other worker goes on with the shards", func() bool {
		leases := r.leases()
		return !slices.ContainsFunc(before, func(old lease.Lease) bool {
			now := leases[old.Key]
			return r.isOf(frozen, now) || now.Checkpoint == old.Checkpoint
		})
	})
	_ = frozen.cmd.Process.Signal(syscall.SIGCONT)
}

// leases returns the leases by shard.
func (r *rollupRun) leases() map[nouns.ShardID]lease.Lease {
	ctx := r.t.Context()
	stream, err := r.client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("events")})
	if err != nil {
		r.t.Fatal(err)
	}
	table, err := lease.New(lease.Config{
		DynamoDB: r.tables, Table: "events-by_minute", Stream: lease.Stream{
			Name: "events", Created: *stream.StreamDescriptionSummary.StreamCreationTimestamp,
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	listed, _, err := table.List(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	leases := map[nouns.ShardID]lease.Lease{}
	for _, l := range listed {
		leases[l.Key] = l
	}
	return leases
}

// isOf reports whether a worker has a lease.
func (r *rollupRun) isOf(w *rollupWorker, l lease.Lease) bool {
	return strings.Contains(l.Owner, fmt.Sprintf("-%d-", w.cmd.Process.Pid)) // in the worker's name
}

// openShardsOf returns the leases of a worker whose shards may get records.
func (r *rollupRun) openShardsOf(w *rollupWorker) (open []lease.Lease) {
	listed, err := r.client.ListShards(r.t.Context(),
		&kinesis.ListShardsInput{StreamName: aws.String("events")})
	if err != nil {
		r.t.Fatal(err)
	}
	leases := r.leases()
	for _, s := range listed.Shards {
		l := leases[nouns.ShardID(*s.ShardId)]
		if s.SequenceNumberRange.EndingSequenceNumber == nil && r.isOf(w, l) {
			open = append(open, l)
		}
	}
	return open
}

// hold keeps a worker from writing until release is called.
func (r *rollupRun) hold(w *rollupWorker) (release func()) {
	lock := ""
	switch r.kind {
	case "postgres":
		lock = "lock table runnel_position in exclusive mode"
	case "sqlite":
		lock = "update runnel_position set position = position where false"
	case "mongodb":
		w.toDB.cut(true)
		return func() { w.toDB.cut(false) }
	default:
		w.toTable.cut(true)
		return func() { w.toTable.cut(false) }
	}
	tx, err := r.db.BeginTx(r.t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(r.t.Context(), lock)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}
