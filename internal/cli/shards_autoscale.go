package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/reshard"
)

type autoscaleFlags struct {
	policy               reshard.Policy
	target, split, merge part
	every, window        time.Duration
	parallel             int
	throttles            []string
	shardBytes           string
	once, yes            bool
}

func autoscaleShardsCommand(con *console.Console) *cobra.Command {
	f := &autoscaleFlags{target: 0.7, split: 0.8, merge: 0.35}
	command := streamCommand(con, &cobra.Command{
		Use:   "autoscale --stream NAME",
		Short: "Split hot shards and merge idle ones, as the load asks for, and say why",
		Long: `Split the hot shards of a stream and merge the idle ones as its load asks for, and
say line by line why. Without --yes it changes nothing and says what it would do.

Every minute it looks at what arrives in the stream for half of it; no CloudWatch is asked. A shard
above --split-above of what it takes, in bytes or in records, in --split-after of the last windows
is split so that no piece is above --target. Neighbours that together stay at or under
--merge-under for --merge-after windows are merged. Between the two nothing is done, so that a load
that comes and goes does not split again what was merged. A key that is too much for a shard alone
is named and left alone.

The stream shows what got in. With --throttles, the page of a "runnel proxy" that puts into it, what
was refused counts too, and a hot stream is found sooner.

It runs until SIGINT or SIGTERM, and then ends with 0, also amid the steps of a change: the next run
goes on from the shards that there are. See docs/autoscale.md.`,
		Example: `  runnel shards autoscale --local --stream orders
  runnel shards autoscale --local --stream orders --min 2 --max 16 --yes
  runnel shards autoscale --local --stream orders --throttles http://127.0.0.1:4568 --yes
  runnel shards autoscale --local --stream orders --once --window 5m --yes`,
		Args: usage.NoArgs,
	}, func(ctx context.Context, of *shardsOf, _ []string) error {
		cfg, err := f.config(of.stream)
		if err != nil {
			return err
		}
		return of.autoscale(ctx, cfg)
	})
	f.addFlags(command)
	return command
}

func (f *autoscaleFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.yes, "yes", false, "do it")
	flags.BoolVar(&f.once, "once", false,
		"end after one window, and decide by that alone: as with --split-after 1 --merge-after 1")
	flags.IntVar(&f.policy.MinShards, "min", 1, "the fewest shards; fewer are split")
	flags.IntVar(&f.policy.MaxShards, "max", 100, "the most shards that splits lead to")
	flags.Var(&f.split, "split-above", "split a shard above that load, of what it takes")
	flags.Var(&f.target, "target", "the most load that the pieces of a split are to have")
	flags.Var(&f.merge, "merge-under",
		"merge neighbours whose peaks together are not above that load; 0% merges nothing")
	flags.IntVar(&f.policy.SplitWindows, "split-after", 2,
		"in how many of the last 3 windows (or that many, if more) a shard has to be hot")
	flags.IntVar(&f.policy.MergeWindows, "merge-after", 10,
		"how many windows in a row neighbours have to be idle")
	flags.DurationVar(&f.policy.MergeCooldown, "merge-cooldown", 10*time.Minute,
		"how long nothing is merged after the shards have changed")
	flags.DurationVar(&f.policy.SplitCooldown, "split-cooldown", 0,
		"how long nothing is split after that")
	flags.IntVar(&f.policy.MaxSteps, "steps", 16,
		"the most splits or merges at a time; on AWS one takes some 30 s")
	flags.DurationVar(&f.every, "every", time.Minute, "from one window's beginning to the next's")
	flags.DurationVar(&f.window, "window", 0,
		"how long to look at what arrives (default 30s, or --every if that is less)")
	flags.IntVar(&f.parallel, "parallel", 32, "how many shards to read at the same time")
	flags.StringArrayVar(&f.throttles, "throttles", nil,
		"URL of a runnel proxy, or of a page that has its counters; may be given several times")
	flags.StringVar(&f.shardBytes, "shard-bytes", "1MiB",
		"how many bytes a shard takes a second, where that is not as on AWS")
	flags.Float64Var(&f.policy.ShardRecords, "shard-records", reshard.ShardRecords,
		"how many records it takes a second")
}

// config reads the flags.
func (f *autoscaleFlags) config(stream string) (reshard.AutoscaleConfig, error) {
	policy := f.policy
	size, err := usage.ParseSize(f.shardBytes)
	if err != nil {
		return reshard.AutoscaleConfig{}, exit.Usage("--shard-bytes: %w", err)
	}
	policy.ShardBytes = float64(size)
	policy.SplitAbove, policy.Target, policy.MergeUnder = float64(f.split), float64(f.target),
		float64(f.merge)
	if f.merge == 0 {
		policy.MergeUnder = -1
	}
	if policy.MergeCooldown == 0 {
		policy.MergeCooldown = -1
	}
	every := f.every
	if f.once {
		every = max(every, f.window)
	}
	switch {
	case f.target == 0 || f.split == 0 || f.policy.MinShards == 0 || f.policy.MaxShards == 0 ||
		policy.SplitWindows == 0 || policy.MergeWindows == 0 || policy.MaxSteps == 0 ||
		policy.ShardRecords == 0 || size == 0:
		return reshard.AutoscaleConfig{}, exit.Usage("--target, --split-above, --min, --max, " +
			"--split-after, --merge-after, --steps, --shard-bytes and --shard-records: want more " +
			"than 0")
	case f.every <= 0 || f.window < 0 || f.window > every || f.parallel < 1:
		return reshard.AutoscaleConfig{}, exit.Usage("--window %s, --every %s, --parallel %d: "+
			"want a window up to --every, and at least one shard at a time", f.window, f.every,
			f.parallel)
	}
	if err := policy.Validate(); err != nil {
		return reshard.AutoscaleConfig{}, exit.Usage("%w", err)
	}
	cfg := reshard.AutoscaleConfig{
		Policy: policy, Apply: f.yes, Every: every, Window: f.window, Parallel: f.parallel,
		Once: f.once,
	}
	if len(f.throttles) > 0 {
		pages, err := newThrottlePages(f.throttles, stream)
		if err != nil {
			return cfg, exit.Usage("--throttles %w", err)
		}
		cfg.Throttles = pages.read
	}
	return cfg, nil
}

// autoscale runs until it is stopped.
func (of *shardsOf) autoscale(ctx context.Context, cfg reshard.AutoscaleConfig) error {
	printer := &autoscalePrinter{con: of.con, stream: of.stream, yes: cfg.Apply}
	if cfg.Apply {
		of.con.Say("stream %s: looking for %s every %s", of.stream, windowOf(cfg), cfg.Every)
	} else {
		of.con.Say("stream %s: looking for %s every %s; nothing is changed without --yes", of.stream,
			windowOf(cfg), cfg.Every)
	}
	err := reshard.Autoscale(ctx, of.client, of.stream, cfg, printer.print)
	switch {
	case errors.Is(err, reshard.ErrOnDemand):
		return exit.Usage("%w", err)
	case err != nil:
		return exit.Outside(endpoint.Hint(err, of.stream))
	case printer.err != nil:
		return exit.Outside(printer.err)
	case ctx.Err() == nil:
		return nil // once
	}
	if printer.amid {
		of.con.Say("stopped amid a change; the next run goes on from the shards that there are")
	}
	if cfg.Once {
		return exit.ErrInterrupt
	}
	return nil
}

// windowOf returns the effective window of a configuration.
func windowOf(cfg reshard.AutoscaleConfig) time.Duration {
	if cfg.Window == 0 {
		return min(reshard.DefaultWindow, cfg.Every)
	}
	return cfg.Window
}

// part is a fraction of a shard's limit, as a flag: 70% or 0.7.
type part float64

// String returns it in percent.
func (p *part) String() string { return strconv.FormatFloat(float64(*p)*100, 'g', 4, 64) + "%" }

// Set reads it.
func (p *part) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("want a part of what a shard takes, as 70%% or 0.7")
	}
	*p = part(n)
	return nil
}

// Type names it in the help.
func (*part) Type() string { return "part" }
