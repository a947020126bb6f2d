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
		Long: `Split the hot shards of a stream and merge the idle ones, and print the reasons.
Without --yes it changes nothing and prints the changes that it would make.

Every minute it reads for 30 seconds the records that arrive in the stream; it does not use
CloudWatch. A shard is hot when its load, in bytes or in records, exceeds --split-above of its limit
in --split-after of the last windows. It is split so that no piece exceeds --target. Neighbours are
merged when their sum stays at or below --merge-under for --merge-after windows. Between the two
limits nothing changes, so that a varying load does not split merged shards again. A key that alone
exceeds a shard's limit is named; no split helps it.

The stream shows only the records that it accepted. With --throttles, the metrics page of a "runnel
proxy" that puts into the stream, refused records count too, so that a hot shard is found sooner.

It runs until SIGINT or SIGTERM, and then ends with 0, also between the steps of a change: the next
run continues with the open shards. See docs/autoscale.md.`,
		Example: `  runnel shards autoscale --local --stream orders
  runnel shards autoscale --local --stream orders --min 2 --max 16 --yes
  runnel shards autoscale --local --stream orders --throttles http://127.0.0.1:4568 --yes
  runnel shards autoscale --local --stream orders --once --window 5m --yes`,
		Args: usage.NoArgs,
	}, func(ctx context.Context, of *shardsOf, _ []string) error {
		cfg, err := f.config(of.name())
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
		"end after one window, as with --split-after 1 --merge-after 1")
	flags.IntVar(&f.policy.MinShards, "min", 1, "the lowest number of shards; fewer are split")
	flags.IntVar(&f.policy.MaxShards, "max", 100, "splits stop at this number of shards")
	flags.Var(&f.split, "split-above", "split a shard above this part of its limit")
	flags.Var(&f.target, "target",
		"the highest load of a piece after a split, as a part of the limit")
	flags.Var(&f.merge, "merge-under",
		"merge neighbours if the sum of their peaks is at most this part of a limit; 0% merges "+
			"nothing")
	flags.IntVar(&f.policy.SplitWindows, "split-after", 2,
		"in how many of the last 3 windows (or that many, if more) a shard has to be hot")
	flags.IntVar(&f.policy.MergeWindows, "merge-after", 10,
		"how many windows in a row neighbours have to be idle")
	flags.DurationVar(&f.policy.MergeCooldown, "merge-cooldown", 10*time.Minute,
		"how long nothing is merged after the shards have changed")
	flags.DurationVar(&f.policy.SplitCooldown, "split-cooldown", 0,
		"how long nothing is split after the shards have changed")
	flags.IntVar(&f.policy.MaxSteps, "steps", 16,
		"the highest number of splits or merges at a time; on AWS one takes about 30 s")
	flags.DurationVar(&f.every, "every", time.Minute,
		"from the start of one window to the start of the next")
	flags.DurationVar(&f.window, "window", 0,
		"how long to read the stream each time (default 30s, or --every if that is less)")
	flags.IntVar(&f.parallel, "parallel", 32, "how many shards to read at the same time")
	flags.StringArrayVar(&f.throttles, "throttles", nil,
		"URL of a runnel proxy, or of a page that has its counters; may be given several times")
	flags.StringVar(&f.shardBytes, "shard-bytes", "1MiB",
		"a shard's limit in bytes a second, if it differs from AWS's")
	flags.Float64Var(&f.policy.ShardRecords, "shard-records", reshard.ShardRecords,
		"a shard's limit in records a second")
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
	printer := &autoscalePrinter{con: of.con, stream: of.name(), yes: cfg.Apply}
	if cfg.Apply {
		of.con.Say("stream %s: looking for %s every %s", of.name(), windowOf(cfg), cfg.Every)
	} else {
		of.con.Say("stream %s: looking for %s every %s; nothing is changed without --yes",
			of.name(),
			windowOf(cfg), cfg.Every)
	}
	cfg.Stream, cfg.Kinesis, cfg.OnEvent = of.stream, of.client, printer.print
	err := reshard.Autoscale(ctx, cfg)
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
		return fmt.Errorf("want a part of a shard's limit, as 70%% or 0.7")
	}
	*p = part(n)
	return nil
}

// Type names it in the help.
func (*part) Type() string { return "part" }
