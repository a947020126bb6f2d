package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rewind"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/lease"
)

// seekFlags are the flags of leases seek.
type seekFlags struct {
	resetFlags
	wait time.Duration
}

func seekLeasesCommand(con *console.Console) *cobra.Command {
	f := &seekFlags{}
	command := &cobra.Command{
		Use:   "seek --to oldest|latest|TIME --app NAME",
		Short: "Set a running application to the records from a time on",
		Long: `Set a running application to the records from a time on, over splits and merges. It
is runnel leases reset beside workers that run: the command asks them for every lease, holds all,
sets the positions, and lets go. The workers finish the work in hand first, and then deliver exactly
the records that arrived at the time or later, parents before children. Paused shards stay paused.
The command prints the changes, and makes them with --yes, or with the application's name typed on a
terminal.

If the leases do not come within --wait, the command gives all back, and nothing has changed. After
kill -9 the leases expire, and the workers go on; run it again. A worker that has been silent for
the failover time counts as dead: its leases are taken, and named. It is refused where a sink keeps
the position with the records, as the archive's does, and where a Java worker lives, which passes no
lease.`,
		Example: `  runnel leases seek --to 2026-11-25T09:00:00Z --local --app printers --yes`,
		Args:    usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runSeek(c.Context(), con, f)
		},
	}
	f.addFlags(command)
	command.Flags().DurationVar(&f.wait, "wait", time.Minute,
		"how long to wait until the workers have passed all leases")
	return command
}

func runSeek(ctx context.Context, con *console.Console, f *seekFlags) error {
	to, err := f.check()
	if err != nil {
		return err
	}
	if f.wait <= 0 {
		return exit.Usage("--wait must be above 0")
	}
	r, err := f.openStream(ctx)
	if err != nil {
		return err
	}
	goals, leases, err := r.find(ctx, to)
	if err != nil {
		return err
	}
	silent := 0
	seek := rewind.Seek{
		Table: r.table, Origin: r.bound.Origin, Failover: f.failover, Wait: f.wait,
		Worker: "seek-" + rand.Text(), Goals: goals, Latest: to.Word() == runnel.Latest,
		Shards: r.shards, OnHeld: func(held int) {
			if silent > 0 {
				con.Say("all leases are held, %d: %d were taken from silent workers", held, silent)
			} else {
				con.Say("the workers have passed all leases: %d are held", held)
			}
		},
		OnSilent: func(of lease.Lease, silence time.Duration) {
			silent++
			con.Say("%s is taken from %s, which was silent for %s", of.Key, of.Owner,
				silence.Round(time.Second/10))
		},
	}
	if err := printChanges(con, seek.Changes(goals, leases)); err != nil {
		return err
	}
	if !f.yes {
		if err := con.Confirm(ctx, f.app, "changed"); err != nil {
			return err
		}
	}
	sayFailover(con, f.failover, leases)
	if err := rewind.RefuseJava(ctx, r.table, f.failover); err != nil {
		return seekError(ctx, err, false)
	}
	set, begun, err := seek.Run(ctx)
	if err == nil && !r.bound.Synced {
		err = r.table.MarkSynced(context.WithoutCancel(ctx), r.bound)
	}
	if err != nil {
		return seekError(ctx, err, begun)
	}
	con.Say("%d leases are set, and all are given back", set)
	return nil
}

// shards lists the stream's shards.
func (r *resetting) shards(ctx context.Context) ([]runnel.Shard, error) {
	return shardmap.List(ctx, r.client, r.table.Stream().Name, nil)
}

// seekError sets the exit status, and says what has changed.
func seekError(ctx context.Context, err error, begun bool) error {
	what := "nothing was changed"
	if begun {
		what = "some leases are set: run it again"
	}
	switch {
	case ctx.Err() != nil:
		return exit.Interrupted("interrupted: %s", what)
	case slices.ContainsFunc([]error{rewind.ErrSink, rewind.ErrJava}, func(refusal error) bool {
		return errors.Is(err, refusal)
	}):
		return exit.Usage("%w; %s", err, what)
	}
	return exit.Outside(fmt.Errorf("%w; %s", err, what))
}
