package cli

import (
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/exit"
)

// readFlags are the flags of every command that reads shards to process or to print them.
type readFlags struct {
	rate float64 // the highest number of reads a second and shard; 0 is the default
	void voidFlag
}

func (f *readFlags) addFlags(flags *pflag.FlagSet) {
	flags.Float64Var(&f.rate, "read-rate", 0,
		"most reads a second and shard (default 5, AWS's limit; none at a loopback endpoint)")
	f.void.addFlag(flags)
}

func (f *readFlags) check() error {
	if !(f.rate >= 0) || math.IsInf(f.rate, 1) {
		return exit.Usage("--read-rate is %g: want 0 (the default) or more reads a second and "+
			"shard", f.rate)
	}
	return nil
}

// workerFlags are the flags of every command that is one worker of a fleet.
type workerFlags struct {
	failover, checkpointEvery time.Duration
	maxLeases                 int
	fanout                    string
	monitor                   monitorFlags
	flags                     *pflag.FlagSet
}

// leastFailover is the shortest failover time of a worker, as consumer.Config has it.
const leastFailover = 100 * time.Millisecond

// workerOnly are the flags that addFlags adds.
var workerOnly = []string{
	"failover", "checkpoint-every", "max-leases", "fanout", "metrics", "cloudwatch",
}

func (f *workerFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	f.flags = flags
	flags.DurationVar(&f.failover, "failover", 10*time.Second,
		"how long a worker may be silent before the others take its shards over")
	flags.DurationVar(&f.checkpointEvery, "checkpoint-every", 0, "the shortest time between two "+
		"checkpoints of a shard in the lease table (default and most: half of --failover)")
	flags.IntVar(&f.maxLeases, "max-leases", 0, "read at most this many shards; shards beyond the "+
		"limits of all workers are not read, and reported (default no limit)")
	flags.StringVar(&f.fanout, "fanout", "",
		"read by enhanced fan-out as this registered consumer, a name or an ARN; polls while that "+
			"cannot be had, and says so (default: poll)")
	f.monitor.addFlags(command)
}

// set passes the flags of a worker and of its reading on to its configuration.
func (f *workerFlags) set(cfg *consumer.Config, reading *readFlags) error {
	given := f.flags.Changed("checkpoint-every")
	switch {
	case f.failover < leastFailover:
		return exit.Usage("--failover is %s: want %s or more", f.failover, leastFailover)
	case f.maxLeases < 0:
		return exit.Usage("--max-leases is %d: want 0 (no limit) or more", f.maxLeases)
	case given && f.checkpointEvery <= 0 || f.checkpointEvery > f.failover/2:
		return exit.Usage("--checkpoint-every is %s: want more than 0, and at most half of "+
			"--failover, %s: a lease is renewed then, and its checkpoint with it",
			f.checkpointEvery, f.failover/2)
	}
	if err := reading.check(); err != nil {
		return err
	}
	cfg.Failover, cfg.CheckpointInterval = f.failover, f.checkpointEvery
	cfg.MaxLeases = f.maxLeases
	cfg.ReadRate, cfg.Void = reading.rate, reading.void.policy()
	if f.fanout != "" { // a command polls rather than not work at all
		cfg.Fanout = &consumer.Fanout{Consumer: f.fanout, OrPoll: true}
	}
	return nil
}

// connect gives the worker its clients.
func (f *workerFlags) connect(cfg *consumer.Config, to aws.Config) {
	cfg.Kinesis, cfg.DynamoDB = awsclient.Kinesis(to), awsclient.DynamoDB(to)
	if f.monitor.cloudwatch != "" {
		cfg.CloudWatch = &consumer.CloudWatch{
			API: awsclient.CloudWatch(to), Namespace: f.monitor.cloudwatch,
		}
	}
}
