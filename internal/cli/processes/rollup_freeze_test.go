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

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/lease"
)

// freeze stops a worker that has records in hand until the other worker has taken its shards over
// and has committed the same records. The stopped one then goes on with them, and must add nothing.
// A pause at a random moment seldom meets a worker with records in hand.
func (r *rollupRun) freeze() {
	var frozen *rollupWorker
	clitest.Eventually(r.t, "a worker holds a shard", func() bool {
		at := slices.IndexFunc(r.workers[:], func(w *rollupWorker) bool { return r.shardsOf(w) > 0 })
		if at >= 0 {
			frozen = r.workers[at]
		}
		return frozen != nil
	})
	release := r.hold(frozen)
	time.Sleep(rollupFailover / 2) // the worker reads records, and cannot commit them
	_ = frozen.cmd.Process.Signal(syscall.SIGSTOP)
	release()
	clitest.Eventually(r.t, "the other worker has the shards", func() bool {
		return r.shardsOf(frozen) == 0
	})
	time.Sleep(2 * rollupFailover) // the other worker commits
	_ = frozen.cmd.Process.Signal(syscall.SIGCONT)
}

// shardsOf returns the number of shards that a worker holds and has not read to their ends.
func (r *rollupRun) shardsOf(w *rollupWorker) (n int) {
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
	leases, _, err := table.List(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	isOf := fmt.Sprintf("-%d-", w.cmd.Process.Pid) // within the worker's own name
	for _, l := range leases {
		if strings.Contains(l.Owner, isOf) && !l.Ended() {
			n++
		}
	}
	return n
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
