package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/lease"
)

// moveFlags are the flags of commands that move leases.
type moveFlags struct {
	leaseFlags
	failover, wait time.Duration
}

func (f *moveFlags) addFlags(command *cobra.Command) {
	f.leaseFlags.addFlags(command)
	command.Flags().DurationVar(&f.failover, "failover", 10*time.Second,
		"the fleet's failover time: an owner answers within half of it"+failoverOfRows)
	command.Flags().DurationVar(&f.wait, "wait", time.Minute,
		"how long to wait until the leases have moved")
}

func moveLeaseCommand(con *console.Console) *cobra.Command {
	f := &moveFlags{}
	var to string
	command := &cobra.Command{
		Use:   "move SHARD --to WORKER --app NAME",
		Short: "Move a shard to a worker, politely",
		Long: `Move a shard to a worker, politely: its owner finishes its batch, checkpoints and
passes the lease. The shard stays with the worker as long as that lives. Java workers pass no lease
and notice none that they are given, so both workers must be runnel's.`,
		Example: "  runnel leases move shardId-000000000002 --to p2 --local --app printers",
		Args:    usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return exit.Usage("--to is missing: name the worker that should have the shard")
			}
			return runMove(c.Context(), con, f, func(v fleetView) (map[string]string, error) {
				return map[string]string{args[0]: to}, v.takes(to)
			})
		},
	}
	f.addFlags(command)
	command.Flags().StringVar(&to, "to", "", "the worker that should have the shard")
	return command
}

func releaseLeasesCommand(con *console.Console) *cobra.Command {
	f := &moveFlags{}
	var worker string
	command := &cobra.Command{
		Use:   "release SHARD… | --worker WORKER --app NAME",
		Short: "Move shards to other workers, politely",
		Long: `Move shards to other workers, politely: those named, or all that a worker has. They
go to the workers that have least, and stay there as long as these live.`,
		Example: "  runnel leases release --worker p1 --local --app printers",
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 0) == (worker == "") {
				return exit.Usage("want the shards to release, or --worker")
			}
			if slices.Contains(args, "") {
				return errEmptyShard
			}
			return runMove(c.Context(), con, f, func(v fleetView) (map[string]string, error) {
				return v.spread(args, worker)
			})
		},
	}
	f.addFlags(command)
	command.Flags().StringVar(&worker, "worker", "", "release all shards of this worker")
	return command
}

// fleetView is the table at one moment.
type fleetView struct {
	leases  map[runnel.ShardID]lease.Lease
	members []lease.Member
	loads   map[string]int
}

func newFleetView(leases []lease.Lease) fleetView {
	var watch lease.Watch
	now := time.Now()
	watch.Update(now, leases)
	v := fleetView{
		leases: lease.ByKey(leases), members: watch.View(now, time.Hour).Members,
		loads: map[string]int{},
	}
	for _, l := range leases {
		if !l.Ended() {
			v.loads[l.Owner]++
		}
	}
	return v
}

// takes returns an error unless the worker can be given a lease.
func (v fleetView) takes(worker string) error {
	i := slices.IndexFunc(v.members, func(m lease.Member) bool { return m.Name == worker })
	switch {
	case i < 0:
		return exit.Usage("--to %s: the fleet has no such worker; runnel leases list shows the "+
			"owners", worker)
	case v.members[i].Java:
		return exit.Usage("--to %s: it is a Java worker, which never notices a lease that it is "+
			"given: it takes its share by itself", worker)
	case v.members[i].Leaving:
		return exit.Usage("--to %s: it is leaving", worker)
	}
	return nil
}

// spread chooses a worker for each shard: the one with least.
func (v fleetView) spread(shards []string, worker string) (map[string]string, error) {
	for key, l := range v.leases {
		if worker != "" && l.Owner == worker && !l.Ended() {
			shards = append(shards, string(key))
		}
	}
	if len(shards) == 0 {
		return nil, exit.Usage("--worker %s: it has no shard", worker)
	}
	slices.Sort(shards)
	moves := map[string]string{}
	for _, shard := range shards {
		owner, best := v.leases[runnel.ShardID(shard)].Owner, ""
		for _, m := range v.members {
			full := m.MaxLeases > 0 && v.loads[m.Name] >= m.MaxLeases
			if m.Java || m.Leaving || full || m.Name == owner {
				continue
			}
			if best == "" || v.loads[m.Name] < v.loads[best] {
				best = m.Name
			}
		}
		if best == "" {
			return nil, exit.Usage("shard %s: no other worker of runnel has room for it", shard)
		}
		v.loads[best]++
		moves[shard] = best
	}
	return moves, nil
}

// asks returns an error unless the owner of the shard can be asked for it.
func (v fleetView) asks(shard string) error {
	l, there := v.leases[runnel.ShardID(shard)]
	switch {
	case shard == "":
		return errEmptyShard
	case !there:
		return exit.Usage("shard %s has no lease; runnel leases list shows those that there are",
			shard)
	case l.Ended():
		return exit.Usage("shard %s has been processed to its end", shard)
	case l.Owner == "":
		return exit.Usage("shard %s has no owner to ask: a worker takes it when one runs", shard)
	case !l.Owned():
		return exit.Usage("shard %s is held by %s, a Java worker, which passes no lease", shard,
			l.Owner)
	}
	return nil
}

// choose looks at the table and chooses the moves. A worker that has just passed its last lease
// shows itself a moment later, so a refusal is given only after some looks.
func (f *moveFlags) choose(
	ctx context.Context, table *lease.Table, choose func(fleetView) (map[string]string, error),
) (v fleetView, moves map[string]string, err error) {
	for began := time.Now(); ; {
		leases, _, err := table.List(ctx)
		if err != nil {
			return v, nil, exit.Outside(fmt.Errorf("list the leases: %w", err))
		}
		v = newFleetView(leases)
		over := time.Since(began) > failoverOf(f.failover, leases)/4
		if moves, err = choose(v); err == nil || over {
			return v, moves, err
		}
		if retry.Wait(ctx, min(200*time.Millisecond, f.failover/16)) != nil {
			return v, nil, exit.ErrInterrupt
		}
	}
}

func runMove(
	ctx context.Context, con *console.Console, f *moveFlags,
	choose func(fleetView) (map[string]string, error),
) error {
	if f.failover <= 0 || f.wait <= 0 {
		return exit.Usage("--failover and --wait must be above 0")
	}
	table, err := f.open(ctx)
	if err != nil {
		return err
	}
	v, moves, err := f.choose(ctx, table, choose)
	if err != nil {
		return err
	}
	for shard := range moves {
		if err := v.asks(shard); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	m := &mover{
		con: con, table: table, failover: f.failover,
		beats: map[string]beat{}, kept: map[string]int64{}, passed: map[string]bool{},
	}
	for len(moves) > 0 {
		for shard, to := range moves {
			done, err := m.step(limited, shard, to)
			if err != nil && limited.Err() == nil {
				return exit.Outside(err)
			}
			if done {
				delete(moves, shard)
			}
		}
		if len(moves) > 0 && retry.Wait(limited, 200*time.Millisecond) != nil {
			if ctx.Err() != nil {
				return exit.ErrInterrupt
			}
			return exit.Outside(fmt.Errorf("%d shards have not moved within %s: their owners have "+
				"not answered; runnel leases list shows them", len(moves), f.wait))
		}
	}
	return nil
}

// mover asks for leases until they have moved.
type mover struct {
	con      *console.Console
	table    *lease.Table
	failover time.Duration
	beats    map[string]beat
	passed   map[string]bool  // leases that were passed to their workers
	kept     map[string]int64 // counters of leases with an ask that were kept where they are
}

// beat is the last ask for a shard.
type beat struct {
	number int64
	sent   time.Time
}

// step asks for a shard, or asks again, and reports whether the shard has moved.
func (m *mover) step(ctx context.Context, shard, to string) (bool, error) {
	l, err := m.table.Get(ctx, runnel.ShardID(shard))
	if err != nil {
		return false, err
	}
	if l.Owner == to && l.Pin == to && l.Passed() {
		m.passed[shard] = true
		return false, nil // its new owner has not taken it yet
	}
	if l.Owner == to && l.Pin == to {
		if at, asked := m.kept[shard]; asked && l.Counter < at+2 {
			return false, nil // the owner may have seen the ask, and pass the lease on
		}
		m.con.Say("%s is with %s", shard, to)
		return true, nil
	}
	if l.Owner == to && l.Owned() && !l.Passed() { // by the plan, which may move it on
		if l.Ask != (lease.Ask{}) {
			m.kept[shard] = l.Counter
		}
		if err := m.table.Keep(ctx, l); err != nil && !errors.Is(err, lease.ErrAskRefused) {
			return false, err
		}
		return false, nil
	}
	if m.passed[shard] && l.Owner != to {
		return false, fmt.Errorf("shard %s was passed to %s, which has not taken it: it is with "+
			"%s now; runnel leases list shows the owners", shard, to, cmp.Or(l.Owner, "no worker"))
	}
	if !l.Owned() {
		return false, nil // it is under way to somewhere else; the next look shows where
	}
	b := m.beats[shard]
	if ask, ok := l.Asked(); ok && ask.Worker == to && time.Since(b.sent) < m.failover/2 {
		return false, nil
	}
	b = beat{number: b.number + 1, sent: time.Now()}
	m.beats[shard] = b
	err = m.table.Ask(ctx, l, lease.Ask{Worker: to, Beat: b.number, ByHand: true})
	if errors.Is(err, lease.ErrAskRefused) {
		return false, nil // the row has changed: look again
	}
	return false, err
}
