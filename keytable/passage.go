package keytable

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/lease"
)

// KinesisAPI is the part of the Kinesis client that a Move uses; *kinesis.Client has it.
type KinesisAPI interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
	PutRecords(context.Context, *kinesis.PutRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.PutRecordsOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (
		*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
}

// ErrNoLeaseTable is wrapped by errors about an application without a lease table.
var ErrNoLeaseTable = errors.New("it has no lease table: check the name, or start it first")

// MoveConfig configures Table.Move and Table.Resume.
type MoveConfig struct {
	// Kinesis makes the calls; required.
	Kinesis KinesisAPI
	// Stream is the stream that the names' records go to, by its name or ARN; required.
	Stream string
	// Apps are the applications that read the stream, by the names of their lease tables: those
	// of runnel and of the Java KCL.
	Apps []string
	// WithoutApps must be set if Apps is empty. The records of a name are then in order in the
	// stream only: each record under the old key is there before any under the new one. A reader
	// that is behind in the old shard but not in the new one sees them in the wrong order.
	WithoutApps bool
	// OnProgress is called when a step begins and when a step has advanced, by the goroutine that
	// called Move or Resume; default none.
	OnProgress func(Progress)
}

func (c MoveConfig) validate() error {
	var faults []error
	fault := func(bad bool, text string) {
		if bad {
			faults = append(faults, errors.New("keytable: "+text))
		}
	}
	fault(c.Kinesis == nil, "Kinesis is missing: want a *kinesis.Client")
	fault(c.Stream == "", "Stream is missing: want the stream that the names' records go to")
	if err := streamref.Check(c.Stream); err != nil {
		fault(true, fmt.Sprintf("Stream is %q, %v", c.Stream, err))
	}
	fault(len(c.Apps) == 0 && !c.WithoutApps, "Apps is empty: name the applications that read the "+
		"stream, or set WithoutApps")
	fault(len(c.Apps) > 0 && c.WithoutApps, "WithoutApps is set and there are Apps")
	return errors.Join(faults...)
}

// Stage is a step of a Move.
type Stage string

// The steps of a Move, in their order.
const (
	StageMoving   Stage = "moving"   // the log records the move, and Use waits
	StageDraining Stage = "draining" // the records in flight under the old keys get their results
	StagePassing  Stage = "passing"  // the applications read the records under the old keys
	StageMoved    Stage = "moved"    // the names have the new keys
)

// Progress is the progress of a Move.
type Progress struct {
	Stage Stage    // the step under way
	Names []string // the moving names
	App   string   // in StagePassing: the application
	// Left is the number of sessions that have not drained, or of shards not passed.
	Left int
}

// passage moves names from one key to another.
type passage struct {
	table  *Table
	move   MoveConfig
	leases []*lease.Table // of Apps
}

// newPassage checks the stream and the applications before anything moves.
func (t *Table) newPassage(ctx context.Context, cfg MoveConfig) (*passage, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &passage{table: t, move: cfg}
	callCtx, cancel := t.call(ctx)
	defer cancel()
	out, err := cfg.Kinesis.DescribeStreamSummary(callCtx, streamref.Describe(cfg.Stream))
	if err != nil {
		return nil, fmt.Errorf("describe stream %s: %w", cfg.Stream, err)
	}
	stream := lease.Stream{
		Name:    streamref.Name(cfg.Stream),
		Created: aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp),
	}
	for _, app := range cfg.Apps {
		leases, err := lease.New(lease.Config{
			DynamoDB: t.cfg.DynamoDB, Table: app, Stream: stream, CallTimeout: t.cfg.CallTimeout,
		})
		if err != nil {
			return nil, fmt.Errorf("application %s: %w", app, err)
		}
		_, _, err = leases.List(ctx)
		if awserr.DynamoDB.Of(err) == awserr.Missing {
			err = ErrNoLeaseTable
		}
		if err != nil {
			return nil, fmt.Errorf("application %s: %w", app, err)
		}
		p.leases = append(p.leases, leases)
	}
	return p, nil
}

func (p *passage) report(now Progress) {
	if p.move.OnProgress != nil {
		p.move.OnProgress(now)
	}
}

// finish takes moving names to their new keys.
func (p *passage) finish(ctx context.Context, names []string) error {
	moving, latest := map[string]row{}, int64(0)
	var old []string // the keys
	p.table.mu.Lock()
	for _, name := range names {
		if e := p.table.mu.state.moving[name]; e != nil {
			moving[name], latest = e.row, max(latest, e.Since)
			old = append(old, e.text)
		}
	}
	p.table.mu.Unlock()
	if len(moving) == 0 {
		return nil // another process has moved or aborted them
	}
	err := p.table.drain(ctx, latest, func(left int) {
		p.report(Progress{Stage: StageDraining, Names: names, Left: left})
	})
	if err != nil {
		return err
	}
	if len(p.leases) > 0 {
		marks, err := p.mark(ctx, old)
		if err != nil {
			return err
		}
		for _, app := range p.leases {
			if err := p.pass(ctx, app, marks, names); err != nil {
				return err
			}
		}
	}
	if err := p.table.end(ctx, moving); err != nil {
		return err
	}
	p.report(Progress{Stage: StageMoved, Names: names})
	return nil
}

// pass waits until an application has passed the marks.
func (p *passage) pass(
	ctx context.Context, app *lease.Table, marks map[runnel.ShardID]runnel.SequenceNumber,
	names []string,
) error {
	w := waiting{
		table: p.table, move: p.move, reads: awscbor.New(p.move.Kinesis), left: marks,
		before: map[runnel.ShardID]runnel.Position{},
	}
	for {
		err := w.look(ctx, app)
		p.report(Progress{Stage: StagePassing, Names: names, App: app.Name(), Left: len(w.left)})
		if len(w.left) == 0 {
			return nil
		}
		if err == nil || retryable(err) || !isUnusable(err) && awserr.Kinesis.Transient(err) {
			err = retry.Wait(ctx, p.table.cfg.Interval)
		}
		if err != nil {
			return fmt.Errorf("wait for application %s to pass %d shards: %w", app.Name(),
				len(w.left), err)
		}
	}
}

// waiting is the shards in which an application has not passed the mark yet.
type waiting struct {
	table  *Table
	move   MoveConfig
	reads  *awscbor.Client // by move.Kinesis
	left   map[runnel.ShardID]runnel.SequenceNumber
	before map[runnel.ShardID]runnel.Position // the checkpoints of the last look
}

// look removes the passed shards from left.
func (w *waiting) look(ctx context.Context, app *lease.Table) error {
	all, _, err := app.List(ctx)
	if err != nil {
		return err
	}
	shards, err := shardmap.List(ctx, w.move.Kinesis, w.move.Stream, nil)
	if err != nil {
		return err
	}
	leases, left := lease.ByKey(all), map[runnel.ShardID]runnel.SequenceNumber{}
	for shard, mark := range w.left {
		passed, err := w.passed(ctx, leases, shards, shard, mark)
		if err != nil {
			return err
		}
		if !passed {
			left[shard] = mark
		}
	}
	w.left = left
	return nil
}
