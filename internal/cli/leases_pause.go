package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// pauseFlags are the flags of leases pause and leases resume.
type pauseFlags struct {
	leaseFlags
	all      bool
	failover time.Duration
}

func (f *pauseFlags) addFlags(command *cobra.Command) {
	f.leaseFlags.addFlags(command)
	command.Flags().BoolVar(&f.all, "all", false, "all shards that have not ended")
	command.Flags().DurationVar(&f.failover, "failover", 10*time.Second,
		"the fleet's failover time: an owner answers within half of it"+failoverOfRows)
}

func pauseLeasesCommand(con *console.Console) *cobra.Command {
	f := &pauseFlags{}
	command := &cobra.Command{
		Use:   "pause SHARD… | --all --app NAME",
		Short: "Pause shards, whichever worker has them",
		Long: `Pause shards, whichever worker has them: no further record of them is handed out
until runnel leases resume. The row of the lease says so. A live owner sees it within half of the
failover time, and keeps the lease; the work in hand goes on. The pause stays over moves and
restarts. It does not concern the shards' children, and Java workers do not obey it.

The command returns when the owners have seen it. A worker with --once waits for a paused shard.`,
		Example: "  runnel leases pause shardId-000000000002 --local --app printers",
		RunE: func(c *cobra.Command, args []string) error {
			return runPause(c.Context(), con, f, args, true)
		},
	}
	f.addFlags(command)
	return command
}

func resumeLeasesCommand(con *console.Console) *cobra.Command {
	f := &pauseFlags{}
	command := &cobra.Command{
		Use:   "resume SHARD… | --all --app NAME",
		Short: "End the pause of shards",
		Long: `End the pause of shards that runnel leases pause made. The command returns when the
owners have seen it.`,
		Example: "  runnel leases resume --all --local --app printers",
		RunE: func(c *cobra.Command, args []string) error {
			return runPause(c.Context(), con, f, args, false)
		},
	}
	f.addFlags(command)
	return command
}

func runPause(
	ctx context.Context, con *console.Console, f *pauseFlags, shards []string, pause bool,
) error {
	switch {
	case (len(shards) == 0) != f.all:
		return exit.Usage("want shards, or --all")
	case f.failover <= 0:
		return exit.Usage("--failover must be above 0")
	}
	table, err := f.open(ctx)
	if err != nil {
		return err
	}
	leases, _, err := table.List(ctx)
	if err != nil {
		return exit.Outside(fmt.Errorf("list the leases: %w", err))
	}
	chosen, err := f.choose(leases, shards, pause)
	if err != nil {
		return err
	}
	p := &pausing{con: con, table: table, waits: map[runnel.ShardID]lease.Lease{}}
	change := table.Resume
	if p.word = "resumed"; pause {
		p.word, change = "paused", table.Pause
	}
	for _, l := range chosen {
		after, err := change(ctx, l)
		if err != nil {
			return exit.Outside(err)
		}
		p.changed(after)
	}
	if len(p.waits) > 0 {
		sayFailover(con, f.failover, leases)
	}
	return p.await(ctx, failoverOf(f.failover, leases)/2+time.Second)
}

// choose returns the leases of the shards, or those of all that have not ended. A pause may also be
// ended of a shard that was paused before its end: a sink that has gone back has it read again.
func (f *pauseFlags) choose(
	leases []lease.Lease, shards []string, pause bool,
) ([]lease.Lease, error) {
	over := func(l lease.Lease) bool { return l.Ended() && (pause || !l.Paused) }
	if f.all {
		return slices.DeleteFunc(leases, over), nil
	}
	byKey := lease.ByKey(leases)
	chosen := make([]lease.Lease, len(shards))
	for i, shard := range shards {
		l, there := byKey[runnel.ShardID(shard)]
		switch {
		case shard == "":
			return nil, errEmptyShard
		case !there:
			return nil, exit.Usage("shard %s has no lease; runnel leases list shows those that "+
				"there are", shard)
		case over(l):
			return nil, exit.Usage("shard %s has been processed to its end", shard)
		}
		chosen[i] = l
	}
	return chosen, nil
}

// pausing waits until the owners of rows have seen a change.
type pausing struct {
	con   *console.Console
	table *lease.Table
	word  string
	waits map[runnel.ShardID]lease.Lease // the rows as they were changed
}

// changed reports a row that was changed, unless its owner has yet to see it.
func (p *pausing) changed(l lease.Lease) {
	switch {
	case l.Owner == "":
		p.con.Say("%s is %s; no worker has it", l.Key, p.word)
	case !l.Owned():
		p.con.Say("%s is %s for runnel's workers, but %s has it, a Java worker, which does not "+
			"obey", l.Key, p.word, l.Owner)
	default:
		p.waits[l.Key] = l
	}
}

// await waits for a write of each owner, which sees the row in its answer.
func (p *pausing) await(ctx context.Context, limit time.Duration) error {
	for end := time.Now().Add(limit); len(p.waits) > 0; {
		if retry.Wait(ctx, 100*time.Millisecond) != nil {
			return exit.ErrInterrupt
		}
		for id, was := range p.waits {
			now, err := p.table.Get(ctx, id)
			switch {
			case errors.Is(err, lease.ErrLeaseNotFound):
				delete(p.waits, id)
			case err != nil:
				return exit.Outside(err)
			case now.Counter > was.Counter:
				delete(p.waits, id)
				p.con.Say("%s is %s", id, p.word)
			}
		}
		if len(p.waits) > 0 && time.Now().After(end) {
			ids := slices.Sorted(maps.Keys(p.waits))
			return exit.Outside(fmt.Errorf("the rows say %s, but the owners of %s have not "+
				"answered within %s: if they have died, the next ones obey", p.word,
				shardsText(ids), limit))
		}
	}
	return nil
}
