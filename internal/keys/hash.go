package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
)

// mostShards is a number of shards above that of any stream.
const mostShards = 100_000

type hashFlags struct {
	of     endpoint.Flags
	stream string
	shards int
	files  []string
}

// hashLine is a name as `keys hash` prints it.
type hashLine struct {
	Name    string `json:"name"`
	HashKey string `json:"hashKey"`
	ShardID string `json:"shardId,omitempty"`
}

// Cells implements rows.Row.
func (l hashLine) Cells() []string {
	if l.ShardID == "" {
		return []string{l.HashKey, printable(l.Name)}
	}
	return []string{l.HashKey, l.ShardID, printable(l.Name)}
}

func hashCommand(con *console.Console) *cobra.Command {
	f := &hashFlags{}
	command := &cobra.Command{
		Use:   "hash KEY…",
		Short: "Print the hash keys of partition keys, and their shards",
		Long: `Print the hash keys of partition keys, and their shards: the MD5 of the name, as
Kinesis computes it.

Names are arguments, or lines of --file; without either, and for -, lines of standard input. A
line of output is the hash key, the shard with --shards or --stream, and the name.`,
		Example: `  runnel keys hash alice bob
  runnel keys hash --shards 4 alice bob
  cut -d, -f1 users.csv | runnel keys hash --local --stream orders --output json`,
		RunE: func(c *cobra.Command, args []string) error { return runHash(con, c, f, args) },
	}
	f.of.AddFlags(command, false)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "print the open shard of this stream, too")
	flags.IntVar(&f.shards, "shards", 0, "print the shard of a new stream with so many, too")
	flags.StringArrayVar(&f.files, "file", nil,
		"read names from the lines of this file, plain, gzip or zstd; - is standard input")
	return command
}

func runHash(con *console.Console, c *cobra.Command, f *hashFlags, names []string) error {
	layout, err := f.layout(c)
	if err != nil {
		return err
	}
	files := f.files
	if len(names) == 0 && len(files) == 0 || slices.Equal(names, []string{"-"}) {
		names, files = nil, append([]string{"-"}, files...)
	}
	out := rows.NewVerbatim(con.Out, con.JSON())
	hash := func(name string) error {
		if err := input.CheckKey(name); err != nil {
			return exit.Usage("%w", err)
		}
		return out.Row(layout.line(name))
	}
	for _, name := range names {
		if err = hash(name); err != nil {
			err = fmt.Errorf("%q: %w", name, err)
			break
		}
	}
	for _, file := range files {
		if err == nil {
			err = input.EachLine(c.Context(), con.In, file, hash)
		}
	}
	return errors.Join(err, out.Flush())
}

// hashLayout is a layout of shards for names. The zero value has none and prints none.
type hashLayout struct {
	ends []keyspace.Key // of the shards' ranges, ascending
	ids  []string
}

func (f *hashFlags) layout(c *cobra.Command) (l hashLayout, err error) {
	switch {
	case f.stream != "" && f.shards != 0:
		return l, exit.Usage("--stream and --shards exclude each other")
	case f.stream != "":
		return f.layoutOfStream(c.Context())
	case c.Flags().Changed("shards") && (f.shards < 1 || f.shards > mostShards):
		return l, exit.Usage("--shards %d: want 1 to %d", f.shards, mostShards)
	case f.shards > 0:
		for i, r := range keyspace.Uniform(f.shards) {
			l.ends = append(l.ends, r.End)
			l.ids = append(l.ids, shardid.Of(uint32(i)))
		}
	}
	return l, nil
}

func (f *hashFlags) layoutOfStream(ctx context.Context) (l hashLayout, err error) {
	cfg, err := f.of.Load(ctx)
	if err != nil {
		return l, err
	}
	shards, err := shardmap.List(ctx, awsclient.Kinesis(cfg), f.stream, nil)
	if err != nil {
		return l, exit.Outside(endpoint.Hint(err, f.stream))
	}
	shards = slices.DeleteFunc(shards, func(s runnel.Shard) bool { return !s.Open() })
	slices.SortFunc(shards, func(a, b runnel.Shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	ranges := make([]keyspace.Range, len(shards))
	for i, s := range shards {
		ranges[i] = s.Range
		l.ends = append(l.ends, s.Range.End)
		l.ids = append(l.ids, string(s.ID))
	}
	if err := keyspace.Tiles(ranges); err != nil {
		return l, exit.Outside(fmt.Errorf("the open shards of stream %s: %w; is it being "+
			"resharded? Run it again", f.stream, err))
	}
	return l, nil
}

// line returns the hash key of a name, and its shard if there is a layout.
func (l hashLayout) line(name string) hashLine {
	key := keyspace.Of(name)
	line := hashLine{Name: name, HashKey: key.String()}
	if len(l.ends) > 0 {
		at, _ := slices.BinarySearchFunc(l.ends, key, keyspace.Key.Compare)
		line.ShardID = l.ids[at]
	}
	return line
}
