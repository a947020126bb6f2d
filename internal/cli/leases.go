package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/dynamotable"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/lease"
)

func leasesCommand(con *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "leases",
		Short: "List and sum up the leases of a fleet, move, pause and reset them by hand",
		Long: `List and sum up the leases of a fleet, move, pause and reset them by hand.

A fleet is the workers of one application, --app. They share a stream's shards by leases, one for
each shard, in a table of the application's name. The commands look at that table alone, except for
deregister, which is for a stream.`,
		Example: `  runnel leases list --local --app printers
  runnel leases status --local --app printers
  runnel leases move shardId-000000000002 --to p2 --local --app printers
  runnel leases release --worker p1 --local --app printers
  runnel leases pause shardId-000000000002 --local --app printers`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(listLeasesCommand(con), leaseStatusCommand(con), moveLeaseCommand(con),
		releaseLeasesCommand(con), resetLeasesCommand(con), seekLeasesCommand(con),
		pauseLeasesCommand(con), resumeLeasesCommand(con), deregisterCommand(con))
	return command
}

// leaseFlags are the flags of all commands on leases.
type leaseFlags struct {
	of  endpoint.Flags
	app string
}

func (f *leaseFlags) addFlags(command *cobra.Command) {
	f.of.AddFlags(command, true)
	command.Flags().StringVar(&f.app, "app", "", "the application, which names the lease table")
}

// errEmptyShard is returned for a shard's id that is empty, as by a variable that is not set.
var errEmptyShard = exit.Usage("a shard's id is empty: runnel leases list shows the shards")

// failoverOfRows is the end of each --failover's help.
const failoverOfRows = "; a longer one that the lease rows say counts instead (rows of older " +
	"versions and of Java workers say none)"

// failoverOf returns the failover time of the fleet: the flag's, or a longer one that a row says.
func failoverOf(flag time.Duration, leases []lease.Lease) time.Duration {
	return max(flag, lease.LongestFailover(leases))
}

// sayFailover says which failover time counts if it is not the flag's.
func sayFailover(con *console.Console, flag time.Duration, leases []lease.Lease) {
	if longest := failoverOf(flag, leases); longest > flag {
		con.Say("the lease rows say a failover time of %s: it counts instead of --failover %s",
			longest, flag)
	}
}

// open finds the table.
func (f *leaseFlags) open(ctx context.Context) (*lease.Table, error) {
	if f.app == "" {
		return nil, exit.Usage("--app is missing: name the application, which names the lease " +
			"table")
	}
	if err := dynamotable.CheckName(f.app); err != nil {
		return nil, exit.Usage("--app: %w", err)
	}
	cfg, err := f.of.Load(ctx)
	if err != nil {
		return nil, err
	}
	table, err := lease.Find(ctx, lease.Config{DynamoDB: awsclient.DynamoDB(cfg), Table: f.app})
	switch {
	case errors.Is(err, lease.ErrTableNotFound):
		return nil, exit.Usage("there is no lease table %s: no worker of an application of that "+
			"name has run at this endpoint", f.app)
	case errors.Is(err, lease.ErrMultiStream), errors.Is(err, lease.ErrOtherStream):
		return nil, exit.Usage("%w", err)
	case err != nil:
		return nil, exit.Outside(fmt.Errorf("list the leases: %w", err))
	}
	return table, nil
}
