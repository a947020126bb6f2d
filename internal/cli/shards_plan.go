package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

type planFlags struct {
	measure.Flags
	merge float64
	least int
}

func planShardsCommand(con *console.Console) *cobra.Command {
	f := &planFlags{}
	command := planningCommand(con, &cobra.Command{
		Use:   "plan --stream NAME [--key FIELD --over TIME FILE… | -]",
		Short: "See which shards are hot and why, and plan the splits and merges that mend it",
		Long: `See which shards of a stream are hot and why, and make the smallest plan of splits
and merges that brings each shard to its target. It changes nothing: "shards apply" does.

The load is that of the records that arrive during --sample, or with --last of those that have
arrived before. The reads count together with those of consumers, up to four a second of each shard.
Aggregated records are opened. With files, the load is theirs: lines as "runnel put" takes them,
which arrive --over a time.

--target is a part of a shard's limit: of 1 MiB a second, or with --by records of 1,000 records a
second. Adjacent shards are merged while their sum stays under --merge-under.`,
		Example: `  runnel shards plan --local --stream orders --sample 10s
  runnel shards plan --local --stream orders --last 1h --output json > orders.plan
  runnel shards plan --local --stream orders --key id --over 1h orders.ndjson`,
	}, func(ctx context.Context, of *shardsOf, files []string) error {
		if err := f.validate(files); err != nil {
			return err
		}
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		seen, err := measure.See(ctx, con, of.client, of.stream, &f.Flags, files, shards)
		if err != nil {
			return err
		}
		goal := f.goal(seen.Took)
		planned, err := plan.ForLoad(reshard.OpenRanges(shards), seen.Histogram.Points(), goal)
		if err != nil {
			return exit.Outside(err)
		}
		return of.printPlan(planLine{
			Plan: &planned, Load: newPlanLoad(seen, f, goal, shards),
		}, shards)
	})
	f.addFlags(command)
	return command
}

func (f *planFlags) addFlags(command *cobra.Command) {
	f.Flags.AddFlags(command)
	flags := command.Flags()
	flags.StringVar(&f.By, "by", "bytes", "the limit that counts: bytes or records")
	flags.Float64Var(&f.Target, "target", 0.7,
		"the highest load of a shard, as a part of its limit")
	flags.Float64Var(&f.merge, "merge-under", 0.35,
		"merge neighbours up to this load; 0 merges nothing")
	flags.IntVar(&f.least, "min-shards", 1, "merge nothing below this number of shards")
	flags.StringVar(&f.Key, "key", "", "with files: the partition key, as of runnel put")
	flags.StringVar(&f.Format, "format", "ndjson", "with files: ndjson, csv or lines")
}

func (f *planFlags) validate(files []string) error {
	if err := f.Flags.Validate(); err != nil {
		return err
	}
	switch {
	case !(f.merge >= 0 && f.merge <= f.Target):
		return exit.Usage("--merge-under %g: want 0 up to --target, which is %g", f.merge, f.Target)
	case f.least < 0:
		return exit.Usage("--min-shards cannot be below 0")
	case len(files) > 0 && f.Over == 0:
		return exit.Usage("--over is missing: say how long the records of the files take to arrive")
	case len(files) == 0 && (f.Over > 0 || f.Key != ""):
		return exit.Usage("--over and --key are about files, and none is named")
	}
	return nil
}

// goal is the target of a shard in the unit of the load: bytes, or thousandths of a record.
func (f *planFlags) goal(took time.Duration) plan.Goal {
	full := f.Limit(took)
	return plan.Goal{
		Target: max(1, uint64(f.Target*full)), MergeUnder: uint64(f.merge * full),
		MinShards: f.least,
	}
}
