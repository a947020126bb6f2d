package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/exit"
)

// fleetLimits are the flags for the share and the pace of a worker of a fleet.
type fleetLimits struct {
	maxLeases       int
	checkpointEvery time.Duration
}

func (f *fleetLimits) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&f.maxLeases, "max-leases", 0, "read at most this many shards; shards beyond the "+
		"limits of all workers are not read, and reported (default no limit)")
	flags.DurationVar(&f.checkpointEvery, "checkpoint-every", 0, "the shortest time between two "+
		"checkpoints of a shard in the lease table (default and most: half of --failover)")
}

// set passes the flags on to a worker with its Failover.
func (f *fleetLimits) set(cfg *consumer.Config) error {
	switch {
	case f.maxLeases < 0:
		return exit.Usage("--max-leases is %d: want 0 (no limit) or more", f.maxLeases)
	case f.checkpointEvery < 0 || f.checkpointEvery > cfg.Failover/2 && cfg.Failover > 0:
		return exit.Usage("--checkpoint-every is %s: want more than 0, and at most half of "+
			"--failover, %s: a lease is renewed then, and its checkpoint with it",
			f.checkpointEvery, cfg.Failover/2)
	}
	cfg.MaxLeases, cfg.CheckpointInterval = f.maxLeases, f.checkpointEvery
	return nil
}
