package keys

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/keyspace/load"
)

type rebalanceFlags struct {
	keyTable
	stream              string
	apps                []string
	shards              int
	tolerance           float64
	scratch, yes, abort bool
}

func rebalanceCommand(con *console.Console) *cobra.Command {
	f := &rebalanceFlags{}
	command := &cobra.Command{
		Use:   "rebalance --file FILE | --table NAME --stream NAME --app APP[,APP…]",
		Short: "Move names to other keys, so that they are spread evenly again",
		Long: `Move names to other keys, so that they are spread evenly again, after many were
released, or if rates differ from those expected. It prints the moves (old key, new key, name), and
makes them with --yes.

Names with equal rates are balanced with the fewest moves: afterwards the halves of the key space
differ by one name at most, their halves too, and so on. Names with different rates are moved from
the heaviest shard to the lightest, until no shard is more than --tolerance above the mean. With
--scratch every name gets the key that it would get if all came one by one, the heaviest first.

With --table the names move while records are put and read, and each keeps its order. The processes
that put a moving name hold its records back until every --app, the applications that read the
stream, has read the name's earlier records. An interrupted run cancels its unfinished moves. After
kill -9, the same command continues them, and --abort cancels them.`,
		Example: `  runnel keys rebalance --file keys.ndjson --yes
  runnel keys rebalance --local --table tenants --stream orders --app orders-archive --yes`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRebalance(con, c, f) },
	}
	f.add(command, "the file of names and keys, of runnel keys map")
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream that the names' records go to")
	flags.StringSliceVar(&f.apps, "app", nil, "the applications that read the stream, by their "+
		"lease tables; none is order in the stream alone: a reader may see a name's records under "+
		"the new key before those under the old one")
	flags.IntVar(&f.shards, "shards", 4,
		"with --file, how many shards of equal size the space is cut into; with --table they are "+
			"looked up")
	flags.Float64Var(&f.tolerance, "tolerance", 0.1,
		"how far above the mean a shard may be, where names have rates; 0.1 is 10%")
	flags.BoolVar(&f.scratch, "scratch", false, "new keys for all names, with any number of moves")
	flags.BoolVar(&f.yes, "yes", false, "do it")
	flags.BoolVar(&f.abort, "abort", false,
		"cancel the moves of a killed run, and move nothing")
	return command
}

func runRebalance(con *console.Console, c *cobra.Command, f *rebalanceFlags) error {
	space, err := f.check()
	switch {
	case err != nil:
		return err
	case f.shards < 1 || f.shards > 100_000:
		return exit.Usage("--shards %d: want 1 to 100,000", f.shards)
	case f.tolerance < 0:
		return exit.Usage("--tolerance %g: want 0 or more", f.tolerance)
	case f.table != "":
		return rebalanceTable(c.Context(), con, f, space)
	}
	return rebalanceFile(con, c, f, space)
}

// planner returns the plan of the moves for a layout of shards.
func (f *rebalanceFlags) planner(
	layout []keyspace.Range,
) func(allocate.Space, []allocate.Rated) ([]allocate.Move, error) {
	if f.scratch {
		return allocate.RebalanceScratch
	}
	return func(space allocate.Space, all []allocate.Rated) ([]allocate.Move, error) {
		for _, r := range all {
			if r.Rate != all[0].Rate {
				return allocate.RebalanceShards(space, all, layout, f.tolerance)
			}
		}
		return allocate.Rebalance(space, all)
	}
}

// movedName is a move as it is printed.
type movedName struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	Rate uint64 `json:"rate"`
}

// Cells implements rows.Row.
func (m movedName) Cells() []string { return []string{m.From, m.To, printable(m.Name)} }

// printMoves prints the moves and their effect on a layout.
func printMoves(
	con *console.Console, moves []movedName, before, after []allocate.Rated,
	layout []keyspace.Range,
) error {
	out := rows.NewVerbatim(con.Out, con.JSON())
	for _, m := range moves {
		if err := out.Row(m); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	was, err := peakOf(before, layout)
	if err != nil {
		return exit.Outside(err)
	}
	is, err := peakOf(after, layout)
	if err != nil {
		return exit.Outside(err)
	}
	con.Say("%s names, %s moves; the heaviest of %s shards has %.2f times the mean, "+
		"%.2f after that", console.Thousands(len(before)), console.Thousands(len(moves)),
		console.Thousands(len(layout)), was, is)
	return nil
}

// peakOf returns the load of a layout's heaviest shard, as a multiple of the mean.
func peakOf(all []allocate.Rated, layout []keyspace.Range) (float64, error) {
	skew, err := load.NewSkew(layout, 1)
	if err != nil {
		return 0, err
	}
	for _, r := range all {
		skew.Add(r.Key, "", r.Rate)
	}
	return skew.Report(0, 0).PeakToMean, nil
}

// rebalanceFile moves the names of a file.
func rebalanceFile(
	con *console.Console, c *cobra.Command, f *rebalanceFlags, space allocate.Space,
) (err error) {
	file, err := openKeyFile(c.Context(), f.file, space)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	before := slices.Collect(file.allocator.All())
	layout := space.Uniform(f.shards)
	if layout == nil {
		return exit.Usage("--shards %d: a space of %s keys cannot be cut into so many", f.shards,
			space)
	}
	planned, err := f.planner(layout)(space, before)
	if err != nil {
		return exit.Usage("%w", err)
	}
	place := map[string]int{}
	for i, line := range file.lines {
		place[line.Key] = i
	}
	var moves []movedName
	for _, m := range planned {
		line := &file.lines[place[m.From.String()]]
		moves = append(moves, movedName{line.Name, line.Key, m.To.String(), line.Rate})
		line.Key = m.To.String()
		place[line.Key] = place[m.From.String()]
	}
	after := make([]allocate.Rated, len(file.lines))
	for i, line := range file.lines {
		key, _ := keyspace.Parse(line.Key) // it was read, or planned
		after[i] = allocate.Rated{Key: key, Rate: line.Rate}
	}
	if err := printMoves(con, moves, before, after, layout); err != nil {
		return err
	}
	switch {
	case len(moves) == 0:
		return nil
	case !f.yes:
		return exit.Usage("nothing was moved: say --yes")
	}
	return file.save()
}
