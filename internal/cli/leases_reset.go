package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rewind"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/lease"
)

// resetFlags are the flags of leases reset.
type resetFlags struct {
	leaseFlags
	stream, to string
	failover   time.Duration
	yes        bool
}

func resetLeasesCommand(con *console.Console) *cobra.Command {
	f := &resetFlags{}
	command := &cobra.Command{
		Use:   "reset --to oldest|latest|TIME --app NAME",
		Short: "Set the application to the records from a time on",
		Long: `Set the application to the records from a time on, over splits and merges: the
workers that start next deliver exactly those that arrived at the time or later. The command prints
the changes, and makes them with --yes, or with the application's name typed on a terminal.

The workers must have stopped: as long as one holds a lease, the command refuses and names it. It
waits for the failover time to find out. Beside runnel's workers, runnel leases seek does the same.
After an interruption, also by kill -9, run it again before the workers start. Some sinks keep the
position with the records, as the archive does: their applications cannot be reset here.`,
		Example: `  runnel leases reset --to oldest --local --app printers
  runnel leases reset --to 2026-11-25T09:00:00Z --local --app printers --yes`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runReset(c.Context(), con, f)
		},
	}
	f.addFlags(command)
	return command
}

func (f *resetFlags) addFlags(command *cobra.Command) {
	f.leaseFlags.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&f.to, "to", "", "oldest, latest, or a time as 2026-11-25T09:00:00Z")
	usage.StreamVar(flags, &f.stream, "stream",
		"the stream, if the table has only been used by Java workers")
	flags.DurationVar(&f.failover, "failover", 10*time.Second,
		"the fleet's failover time; a worker without a write in this time is gone"+failoverOfRows)
	flags.BoolVar(&f.yes, "yes", false, "do it")
}

func (f *resetFlags) check() (to runnel.From, err error) {
	switch {
	case f.to == "":
		return to, exit.Usage("--to is missing: want oldest, latest, or a time as " +
			"2026-11-25T09:00:00Z")
	case f.failover <= 0:
		return to, exit.Usage("--failover must be above 0")
	}
	if to, err = runnel.ParseFrom(f.to); err != nil {
		return to, exit.Usage("--to: %w", err)
	}
	return to, nil
}

func runReset(ctx context.Context, con *console.Console, f *resetFlags) error {
	to, err := f.check()
	if err != nil {
		return err
	}
	r, err := f.openStream(ctx)
	if err != nil {
		return err
	}
	if f.yes {
		if err := f.refuseHolders(ctx, con, r.table); err != nil {
			return err
		}
	}
	goals, leases, err := r.find(ctx, to)
	if err != nil {
		return err
	}
	changes := rewind.Plan(goals, leases)
	if err := printChanges(con, changes); err != nil {
		return err
	}
	if !f.yes {
		if err := con.Confirm(ctx, f.app, "changed"); err != nil {
			return err
		}
		if err := f.refuseHolders(ctx, con, r.table); err != nil {
			return err
		}
	}
	return r.apply(ctx, con, changes)
}

// resetting is a reset under way.
type resetting struct {
	client *kinesis.Client
	stream string // its name or ARN
	table  *lease.Table
	bound  lease.Binding
	now    time.Time // a time by the stream's clock that has passed
}

// openStream opens the table as one of its stream, as a worker does.
func (f *resetFlags) openStream(ctx context.Context) (*resetting, error) {
	found, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	name := found.Stream().Name
	switch {
	case name == "" && f.stream == "":
		return nil, exit.Usage("--stream is missing: the rows of the table %s do not name their "+
			"stream", f.app)
	case name != "" && f.stream != "" && streamref.Name(f.stream) != name:
		return nil, exit.Usage("--stream %s: the table %s has the leases of stream %s", f.stream,
			f.app, name)
	case name == "":
		name = streamref.Name(f.stream)
	}
	cfg, err := f.of.Load(ctx)
	if err != nil {
		return nil, err
	}
	r := &resetting{client: awsclient.Kinesis(cfg), stream: cmp.Or(f.stream, name)}
	sent := time.Now()
	out, err := r.client.DescribeStreamSummary(ctx, streamref.Describe(r.stream))
	if err != nil {
		return nil, exit.Outside(endpoint.Hint(fmt.Errorf("stream %s: %w", name, err), name))
	}
	r.now = awsclient.Date(sent, out.ResultMetadata)
	stream := lease.Stream{
		Name:    name,
		Created: aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp),
	}
	r.table, err = lease.New(lease.Config{
		DynamoDB: awsclient.DynamoDB(cfg), Table: f.app, Stream: stream,
	})
	if err == nil {
		r.bound, err = r.table.Bind(ctx, runnel.FromOldest())
	}
	if err != nil {
		return nil, workerError("open the leases", name, err)
	}
	return r, nil
}

// refuseHolders returns an error if a worker is alive.
func (f *resetFlags) refuseHolders(
	ctx context.Context, con *console.Console, table *lease.Table,
) error {
	leases, _, err := table.List(ctx)
	var held map[string][]runnel.ShardID
	if err == nil {
		sayFailover(con, f.failover, leases)
		held, err = rewind.Holders(ctx, table, f.failover)
	}
	switch {
	case ctx.Err() != nil:
		return exit.Interrupted("interrupted: nothing was changed")
	case err != nil:
		return exit.Outside(fmt.Errorf("look for workers: %w", err))
	case len(held) == 0:
		return nil
	}
	var workers []string
	for _, worker := range slices.Sorted(maps.Keys(held)) {
		what := "waits"
		if len(held[worker]) > 0 {
			what = "holds " + shardsText(held[worker])
		}
		workers = append(workers, worker+" "+what)
	}
	return exit.Usage("workers are running: %s; stop them first", strings.Join(workers, ", "))
}

// shardsText names a few shards.
func shardsText(ids []runnel.ShardID) string {
	const few = 3
	var names []string
	for _, id := range ids[:min(len(ids), few)] {
		names = append(names, string(id))
	}
	text := strings.Join(names, ", ")
	if more := len(ids) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// find finds the places of the shards, and reads the leases.
func (r *resetting) find(
	ctx context.Context, to runnel.From,
) ([]rewind.Goal, []lease.Lease, error) {
	if to.Time().After(r.now) {
		return nil, nil, exit.Usage("--to %s: it has not come yet, at the stream it is %s; want a "+
			"time that has passed, or latest", to, r.now.UTC().Format(time.RFC3339))
	}
	leases, skipped, err := r.table.List(ctx)
	if err != nil {
		return nil, nil, exit.Outside(fmt.Errorf("list the leases: %w", err))
	}
	if len(skipped) > 0 {
		return nil, nil, exit.Usage("a row cannot be read: %s; delete it or mend it first",
			skipped[0])
	}
	if len(leases) == 0 {
		return nil, nil, exit.Usage("the table %s has no lease: no worker has begun; give the "+
			"first one --from", r.table.Name())
	}
	if err := rewind.Refuse(leases); err != nil {
		return nil, nil, exit.Usage("%w", err)
	}
	name := r.table.Stream().Name
	shards, err := shardmap.List(ctx, r.client, r.stream, nil)
	if err != nil {
		return nil, nil, exit.Outside(endpoint.Hint(fmt.Errorf("list the shards: %w", err), name))
	}
	if err := r.table.Fits(leases, shards); err != nil {
		return nil, nil, workerError("compare the leases with the stream", name, err)
	}
	goals, err := rewind.Find(ctx, rewind.Stream{Kinesis: r.client, Name: r.stream, Now: r.now},
		to, shards)
	switch {
	case ctx.Err() != nil:
		return nil, nil, exit.Interrupted("interrupted: nothing was changed")
	case err != nil:
		return nil, nil, exit.Outside(endpoint.Hint(err, name))
	}
	return goals, leases, nil
}

func (r *resetting) apply(
	ctx context.Context, con *console.Console, changes []rewind.Change,
) error {
	const again = "run it again before the workers start"
	err := rewind.Apply(ctx, r.table, r.bound.Origin, "reset-"+rand.Text(), changes)
	if err == nil && !r.bound.Synced {
		err = r.table.MarkSynced(ctx, r.bound)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.Interrupted("interrupted: " + again)
	case errors.Is(err, lease.ErrLeaseLost):
		return exit.Outside(fmt.Errorf("a worker has started meanwhile: %w; stop it, and %s", err,
			again))
	case err != nil:
		return exit.Outside(fmt.Errorf("%w; %s", err, again))
	}
	con.Say("%d leases are set", len(changes))
	return nil
}

func printChanges(con *console.Console, changes []rewind.Change) error {
	out := rows.New(con.Out, con.JSON())
	out.Align()
	if !con.JSON() {
		header := rows.Line{"SHARD", "POSITION", "NEW POSITION", "ARRIVED"}
		if err := out.Row(header); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := out.Row(newChangeRow(c)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// changeRow is a change as leases reset prints it.
type changeRow struct {
	Shard  string `json:"shardId"`
	Before string `json:"before,omitempty"` // empty: the lease will be created
	After  string `json:"after"`
	// Arrived is the arrival of the record at the new position, the last one to be skipped.
	Arrived string `json:"arrived,omitempty"`
}

func newChangeRow(c rewind.Change) changeRow {
	row := changeRow{Shard: string(c.Shard.ID), After: c.At.String()}
	if !c.Create {
		row.Before = positionOf(c.Lease)
	}
	switch c.At {
	case runnel.Start():
		row.After = string(runnel.TrimHorizon)
	case runnel.End():
		row.After = string(runnel.ShardEnd)
	}
	if !c.Arrival.IsZero() {
		row.Arrived = c.Arrival.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return row
}

// Cells implements rows.Row.
func (r changeRow) Cells() []string {
	return []string{r.Shard, dash(r.Before), r.After, dash(r.Arrived)}
}
