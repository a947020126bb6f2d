package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

func applyShardsCommand(con *console.Console) *cobra.Command {
	var yes bool
	var file string
	command := planningCommand(con, &cobra.Command{
		Use:   "apply --plan FILE --stream NAME",
		Short: "Apply a plan that `shards plan --output json` has made",
		Long: `Apply a plan that "runnel shards plan --output json" has made: its splits and merges,
one at a time. It can be interrupted at any step, also by kill -9. The same command continues: a
plan names hash ranges, so the open ranges show which steps are done. If another program has
resharded the stream, the command stops with an error.`,
		Example: `  runnel shards plan --local --stream orders --output json > orders.plan
  runnel shards apply --local --stream orders --plan orders.plan --yes`,
		Args: usage.NoArgs,
	}, func(ctx context.Context, of *shardsOf, _ []string) error {
		planned, err := readPlan(ctx, con.In, file, of.name())
		if err != nil {
			return err
		}
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		return of.showAndApply(ctx, shards, yes, planned)
	})
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	command.Flags().StringVar(&file, "plan", "", "the file of the plan; - is standard input")
	return command
}

// resharded is the output of a plan that was applied.
type resharded struct {
	Stream  string  `json:"stream"`
	Steps   int     `json:"steps"` // that were taken now
	Shards  int     `json:"shards"`
	Seconds float64 `json:"seconds"`
}

// WriteText implements rows.Report. It prints nothing: the text is progress, on standard error.
func (resharded) WriteText(io.Writer) error { return nil }

// maxPlan is a size in bytes that exceeds any plan, also for the highest number of shards.
const maxPlan = 64 << 20

// readPlan reads the plan of a stream from a file.
func readPlan(
	ctx context.Context, stdin io.Reader, file, stream string,
) (plan.Plan, error) {
	if file == "" {
		return plan.Plan{}, exit.Usage("--plan is missing: make one with " +
			"runnel shards plan --output json > FILE")
	}
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return plan.Plan{}, exit.Usage("--plan: %w", err)
		}
		defer func() { _ = f.Close() }() // it is read only
		in = f
	}
	from := console.UntilDone(ctx, in)
	defer func() { _ = from.Close() }()
	var planned planLine
	if err := json.NewDecoder(io.LimitReader(from, maxPlan)).Decode(&planned); err != nil {
		return plan.Plan{}, input.Unreadable(ctx, fmt.Errorf("--plan %s: %w", file, err))
	}
	if planned.Plan == nil || planned.Stream != stream {
		return plan.Plan{}, exit.Usage("--plan %s: it is a plan for stream %q, not for %s",
			file, planned.Stream, stream)
	}
	return *planned.Plan, nil
}

// applyStep takes a single step.
func (of *shardsOf) applyStep(
	ctx context.Context, shards []runnel.Shard, yes bool, step plan.Step,
) error {
	planned, err := plan.OneStep(reshard.OpenRanges(shards), step)
	if err != nil {
		return exit.Usage("%w", err)
	}
	return of.showAndApply(ctx, shards, yes, planned)
}

// showAndApply applies a plan. Without yes it prints the plan and asks first.
func (of *shardsOf) showAndApply(
	ctx context.Context, shards []runnel.Shard, yes bool, planned plan.Plan,
) error {
	done := planned.Next(reshard.OpenRanges(shards))
	if done == len(planned.Steps) && planned.Reached(reshard.OpenRanges(shards)) == nil {
		of.con.Say("stream %s is as it should be, with %d open shards: nothing to do",
			of.name(), len(planned.Final))
		return nil
	}
	if !yes {
		if err := of.printPlan(planLine{Plan: &planned}, shards); err != nil {
			return err
		}
		if err := of.con.Confirm(ctx, of.name(), "changed"); err != nil {
			return err
		}
	}
	began, at, changed := time.Now(), 0, false
	names := measure.ShardIDs(shards)
	report := func(step plan.Step, s reshard.StepState) {
		if s == reshard.StepFound || s == reshard.StepBegun {
			at++
		}
		changed = changed || s == reshard.StepBegun
		of.con.Say("%d of %d %s: %s", at, len(planned.Steps), s, stepLine(step, names))
	}
	err := reshard.Apply(ctx, of.client, of.stream, planned, report)
	switch {
	case errors.Is(err, plan.ErrLayoutDiffers) && !changed:
		return exit.Usage("%w", err)
	case err != nil && ctx.Err() != nil:
		return exit.Interrupted("interrupted at step %d of "+
			"%d; the same command, or a new plan, goes on from there", max(1, at),
			len(planned.Steps))
	case err != nil:
		return exit.Outside(endpoint.Hint(err, of.stream))
	}
	took := time.Since(began)
	of.con.Say("stream %s has %d open shards, as planned, after %s", of.name(), len(planned.Final),
		took.Round(time.Second))
	return rows.Print(of.con.Out, of.con.JSON(), resharded{
		Stream: of.name(), Steps: len(planned.Steps) - done, Shards: len(planned.Final),
		Seconds: took.Seconds(),
	})
}
