package keys

import (
	"context"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/keytable"
	"github.com/runnel-stream/runnel/reshard"
)

// rebalanceTable moves the names of a table, under load.
func rebalanceTable(
	ctx context.Context, con *console.Console, f *rebalanceFlags, space allocate.Space,
) error {
	switch {
	case f.abort:
		return abortMoves(ctx, con, f, space)
	case f.stream == "":
		return exit.Usage("--stream is missing: name the stream that the names' records go to")
	case f.yes && len(f.apps) == 0:
		return exit.Usage("--app is missing: name the applications that read the stream, or say " +
			"--app none")
	}
	table, cfg, err := f.open(ctx, space)
	if err != nil {
		return err
	}
	client := awsclient.Kinesis(cfg)
	shards, err := reshard.List(ctx, client, f.stream)
	if err != nil {
		return exit.Outside(endpoint.Hint(err, f.stream))
	}
	r := &rebalancing{con: con, flags: f, table: table, layout: reshard.OpenRanges(shards)}
	move := keytable.MoveConfig{
		Kinesis: client, Stream: f.stream, Apps: f.apps, OnProgress: r.progress,
	}
	if slices.Equal(f.apps, []string{"none"}) {
		move.Apps, move.WithoutApps = nil, true
	}
	return r.run(ctx, move)
}

func abortMoves(
	ctx context.Context, con *console.Console, f *rebalanceFlags, space allocate.Space,
) error {
	table, _, err := f.open(ctx, space)
	if err != nil {
		return err
	}
	names := table.Moving()
	if err := table.Abort(ctx, names...); err != nil {
		return tableError(ctx, err)
	}
	con.Say("%s names keep their keys", console.Thousands(len(names)))
	return nil
}

// rebalancing is the state of the moves of a table's names.
type rebalancing struct {
	con    *console.Console
	flags  *rebalanceFlags
	table  *keytable.Table
	layout []keyspace.Range
	last   string // line of console.Progress
	moved  int
}

func (r *rebalancing) run(ctx context.Context, move keytable.MoveConfig) error {
	if left := r.table.Moving(); len(left) > 0 {
		r.con.Say("%s names are being moved by a run that was killed, or goes on elsewhere",
			console.Thousands(len(left)))
		if !r.flags.yes {
			return exit.Usage("nothing was moved: say --yes to go on with these, or --abort to " +
				"take them back")
		}
		if _, err := r.table.Resume(ctx, move); err != nil {
			return r.failed(ctx, err, len(left))
		}
	}
	moves, err := r.table.Plan(r.flags.planner(r.layout))
	if err != nil {
		return tableError(ctx, err)
	}
	if err := r.print(moves); err != nil {
		return err
	}
	switch {
	case len(moves) == 0:
		return nil
	case !r.flags.yes:
		return exit.Usage("nothing was moved: say --yes")
	}
	r.moved = 0
	return r.failed(ctx, r.table.Move(ctx, move, moves), len(moves))
}

func (r *rebalancing) print(moves []keytable.Move) error {
	to := map[string]keyspace.Key{}
	lines := make([]movedName, len(moves))
	for i, m := range moves {
		one, _ := r.table.Lookup(m.Name)
		lines[i] = movedName{m.Name, m.From.String(), m.To.String(), one.Rate}
		to[m.Name] = m.To
	}
	var before, after []allocate.Rated
	for _, one := range r.table.All() {
		before = append(before, allocate.Rated{Key: one.Key, Rate: one.Rate})
		if key, moves := to[one.Name]; moves {
			one.Key = key
		}
		after = append(after, allocate.Rated{Key: one.Key, Rate: one.Rate})
	}
	return printMoves(r.con, lines, before, after, r.layout)
}

// progress prints the progress of the moves if it has changed.
func (r *rebalancing) progress(p keytable.Progress) {
	line := fmt.Sprintf("%s %d names", p.Stage, len(p.Names))
	switch p.Stage {
	case keytable.StageDraining:
		line += fmt.Sprintf(": waiting for %d processes", p.Left)
	case keytable.StagePassing:
		line += fmt.Sprintf(": waiting for application %s in %d shards", p.App, p.Left)
	case keytable.StageMoved:
		r.moved += len(p.Names)
	case keytable.StageMoving:
	}
	if line != r.last {
		r.con.Say("%s", line)
	}
	r.last = line
}

func (r *rebalancing) failed(ctx context.Context, err error, of int) error {
	if err != nil && ctx.Err() != nil {
		return exit.Interrupted("interrupted: %d of %d moves "+
			"are made; the same command goes on with the others: %w", r.moved, of, err)
	}
	return tableError(ctx, err)
}
