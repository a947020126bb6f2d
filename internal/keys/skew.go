package keys

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/reshard"
)

type skewFlags struct {
	measure.Flags
	to              endpoint.Flags
	stream          string
	shards          []int
	hashKey, weight string
	rate, svg       string
	names           bool // the lines are keys
}

func skewCommand(con *console.Console) *cobra.Command {
	f := &skewFlags{}
	command := &cobra.Command{
		Use:   "skew --shards N [FILE… | -]",
		Short: "See how unevenly keys load shards, and which keys make it so",
		Long: `See how unevenly keys load shards, and which keys cause it: the load of each shard,
the heaviest keys, and the keys that alone exceed a shard's limit, so that no split helps.

The load is that of files, plain, gzip or zstd, or of standard input. Without --key a line is a key,
and counts as one record. With --key a line is a record as of "runnel put", with its --hash-key if
it has one; with --weight a field has the weight of the line. --hash-key alone reads a list of hash
keys. With --stream and no files the load is that of the records that arrive in the stream, or with
--last of those that have arrived. Aggregated records are opened; a user record counts as its share
of one.

The shards are those of new streams with --shards N, or the open ones of --stream. Several numbers,
as 2,4,8, are compared. A shard's limit is 1 MiB and 1,000 records a second; --target is a part of
it. For files, --over or --rate gives the speed at which their records arrive.

Memory is bounded for any number of keys: 4,096 are counted at a time. If a weight is not exact, the
lowest possible value is printed.`,
		Example: `  runnel keys skew --shards 8 names.txt
  runnel keys skew --shards 4,8,16 --key repo --over 3h events.ndjson.gz
  runnel keys skew --shards 8 --key name --hash-key key --weight rate keys.ndjson
  sort names.txt | uniq -c | runnel keys skew --shards 8 --format lines --key 2 --weight 1
  runnel keys skew --local --stream orders --sample 30s --svg skew.svg`,
		RunE: func(c *cobra.Command, files []string) error {
			return runSkew(con, c, f, files)
		},
	}
	f.to.AddFlags(command, false)
	f.Flags.AddFlags(command)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream to measure, or with files the "+
		"stream with the shards")
	flags.IntSliceVar(&f.shards, "shards", nil, "the shards of a new stream with so many; "+
		"several are compared")
	flags.StringVar(&f.By, "by", "", "the limit that counts: bytes or records (default: bytes, "+
		"or records for keys and weights)")
	flags.Float64Var(&f.Target, "target", 1, "the highest load of a shard, as a part of its limit")
	flags.StringVar(&f.Key, "key", "", "the partition key, as of runnel put")
	flags.StringVar(&f.hashKey, "hash-key", "", "the explicit hash key, as of runnel put")
	flags.StringVar(&f.weight, "weight", "", "a field as of --key: a whole number of records or "+
		"bytes, the weight of the line")
	flags.StringVar(&f.Format, "format", "ndjson", "with --key or --hash-key: ndjson, csv or lines")
	flags.StringVar(&f.rate, "rate", "", "with files: how much arrives in a second in all, as "+
		"50000 records, or 20MiB by bytes")
	flags.StringVar(&f.svg, "svg", "", "write a picture to this file, too")
	return command
}

func runSkew(con *console.Console, c *cobra.Command, f *skewFlags, files []string) error {
	if err := f.complete(&files); err != nil {
		return err
	}
	rate, err := f.perSecondInAll()
	if err != nil {
		return err
	}
	var format *input.Format
	if len(files) > 0 {
		if format, err = f.inputFormat(); err != nil {
			return err
		}
	}
	var client *kinesis.Client
	if f.stream != "" {
		cfg, err := f.to.Load(c.Context())
		if err != nil {
			return err
		}
		client = awsclient.Kinesis(cfg)
	}
	shown := &shownSkew{flags: f, files: len(files) > 0}
	seen := &measure.Load{Took: f.Over}
	if seen.Skews, err = f.skews(c.Context(), client, shown); err != nil {
		return err
	}
	if format == nil {
		err = measure.Observe(c.Context(), con, client, f.stream, &f.Flags, seen)
	} else {
		err = readSkew(c.Context(), con, f, format, files, seen)
	}
	if err != nil {
		return err
	}
	if rate > 0 {
		seen.Took = max(1, time.Duration(seen.Weight()/rate*float64(time.Second)))
	}
	shown.take(seen)
	if err := f.draw(shown); err != nil {
		return err
	}
	return printSkew(con, shown)
}

// complete sets the defaults and returns an error for flags that do not fit together.
func (f *skewFlags) complete(files *[]string) error {
	if len(*files) == 0 && f.stream == "" {
		*files = []string{"-"}
	}
	live := len(*files) == 0
	f.names = !live && f.Key == "" && f.hashKey == ""
	if f.By == "" {
		f.By = "bytes"
		if f.names || f.weight != "" {
			f.By = "records"
		}
	}
	if err := f.Validate(); err != nil {
		return err
	}
	switch {
	case f.stream == "" && len(f.shards) == 0:
		return exit.Usage("--shards is missing: say how many, or name a --stream that has some")
	case slices.ContainsFunc(f.shards, func(n int) bool { return n < 1 || n > mostShards }):
		return exit.Usage("--shards: want 1 to %d of them", mostShards)
	case !live && f.stream != "" && len(f.shards) > 0:
		return exit.Usage("with files, --stream and --shards exclude each other")
	case live && (f.Key != "" || f.hashKey != "" || f.weight != ""):
		return exit.Usage("--key, --hash-key and --weight are about files, and none is named; " +
			"- is standard input")
	case live && (f.Over > 0 || f.rate != ""):
		return exit.Usage("--over and --rate are about files, and none is named; " +
			"- is standard input")
	case f.Over > 0 && f.rate != "":
		return exit.Usage("--over and --rate exclude each other")
	case f.names && f.weight != "":
		return exit.Usage("--weight is a field of a line: name that of the key, too, with --key")
	case f.names && f.By == "bytes":
		return exit.Usage("--by bytes: a list of keys has no bytes; name the field of events " +
			"with --key")
	case f.svg != "" && len(f.shards) > 1:
		return exit.Usage("--svg is a picture of one number of --shards")
	}
	return nil
}

// perSecondInAll is the --rate in the unit of the weights; 0 is none.
func (f *skewFlags) perSecondInAll() (float64, error) {
	if f.rate == "" {
		return 0, nil
	}
	n, err := usage.ParseSize(f.rate)
	if err != nil {
		return 0, exit.Usage("--rate: %w", err)
	}
	if f.By == "records" {
		return measure.RecordWeight * float64(n), nil
	}
	return float64(n), nil
}

func (f *skewFlags) inputFormat() (*input.Format, error) {
	if f.names {
		return input.Names(), nil
	}
	return input.New(input.Fields{
		Format: f.Format, Key: f.Key, HashKey: f.hashKey, HashKeyAlone: true, Weight: f.weight,
	})
}

// skews makes a skew for each layout, and gives the output the names of its shards.
func (f *skewFlags) skews(
	ctx context.Context, client *kinesis.Client, shown *shownSkew,
) (skews []*load.Skew, err error) {
	layouts := make([][]keyspace.Range, 0, max(1, len(f.shards)))
	for _, n := range f.shards {
		layouts = append(layouts, keyspace.Uniform(n))
	}
	if len(layouts) == 0 {
		shards, err := reshard.List(ctx, client, f.stream)
		if err != nil {
			return nil, exit.Outside(endpoint.Hint(err, f.stream))
		}
		layouts = append(layouts, reshard.OpenRanges(shards))
		shown.ids = measure.ShardIDs(shards)
	}
	counters := measure.Counters
	for _, layout := range layouts {
		skew, err := load.NewSkew(layout, counters)
		if err != nil {
			return nil, exit.Outside(err)
		}
		skews = append(skews, skew)
		counters = 0
	}
	return skews, nil
}

// readSkew reads the files and shows its progress.
func readSkew(
	ctx context.Context, con *console.Console, f *skewFlags, format *input.Format,
	files []string, seen *measure.Load,
) error {
	start := time.Now()
	format.Bytes.Measure(files)
	stop := con.Watch(ctx, func() string { return format.Bytes.Bar(time.Since(start)) })
	defer stop()
	return seen.ReadFiles(ctx, &f.Flags, format, files)
}

// draw writes the picture, with --svg.
func (f *skewFlags) draw(shown *shownSkew) error {
	if f.svg == "" {
		return nil
	}
	scale, unit := shown.scale()
	picture := []byte(shown.reports[0].SVG(scale, unit))
	return exit.Outside(os.WriteFile(f.svg, picture, 0o644)) //nolint:gosec // for others, too
}
