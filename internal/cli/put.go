package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/keys"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/producer"
)

type putFlags struct {
	to                         endpoint.Flags
	stream, key, format, order string
	hashKey, resume            string
	keys                       keys.Flag
	skipRefused                string
	giveUpAfter                time.Duration
}

func putCommand(con *console.Console) *cobra.Command {
	f := &putFlags{}
	command := &cobra.Command{
		Use:   "put --stream NAME --key FIELD [FILE… | -]",
		Short: "Put the lines of files into a stream, in order per key",
		Long: `Put the lines of files, or of standard input, into a stream. A line is a record,
without its line break. Blank lines are skipped; gzip and zstd are recognised by content. Records of
one key stay in their order, under failures, retries and resharding.

It retries through outages without limit, unless --give-up-after is set. A missing, empty or
over-long key, or a line in another format than --format, ends with status 2 and the line's number
before anything newer is sent.

Waiting records of a key are put as one aggregated record, which runnel's consumers and the KCL
open. Other readers (boto3, a Lambda function without a deaggregator) see bytes that begin with
\xf3\x89\x9a\xc2. For them say --order plain, which puts each record as it is; a retry may then
leave a double. A record that leaves no room for more within the stream's limit goes as it is in
every order.

Lines are put in their order, and so at the pace of the slowest shard: once records that a shard
refuses have filled their part of the buffer, the following lines wait. "runnel proxy" takes many
callers at once, and delays only the callers of that shard.

Without --hash-key the MD5 of a key selects its shard. With it a field does, as a number from 0 to
2^128-1; "runnel keys" has evenly spread ones. The records of one key are in order as long as
they have the same hash key.

With --resume STATE the same command continues a load that was interrupted, by kill -9, by a crash
or by a full disk. Nothing is lost, and runnel's consumers drop records that were sent twice. The
input may have grown at its end. Apart from that, the input, the stream, the order and the source of
the keys must be the same.

When the stream refuses the caller (a wrong key, a missing right, no such stream), put stops
reading, reports how many records are open, and ends with 3; with --resume the next run continues
exactly there. A record that the stream refuses for itself, or that is given up, is named with its
line. With --resume the state keeps it: every run ends with 1 until --skip-refused FILE has appended
the input's line to FILE.

With --output json it ends with counts. "unknown" counts the attempts without an answer: each may
have left one double in the stream.`,
		Example: `  echo '{"user":{"id":7}}' | runnel put --local --stream orders --key /user/id
  runnel put --local --stream orders --key id --resume orders.state orders.ndjson`,
		RunE: func(c *cobra.Command, args []string) error {
			return runPut(c.Context(), con, f, args)
		},
	}
	f.to.AddFlags(command, true)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.StringVar(&f.key, "key", "", "the partition key: a field's name or a JSON pointer; "+
		"a column with csv; a word's number with lines")
	flags.StringVar(&f.hashKey, "hash-key", "", "a field as of --key: the explicit hash key, in "+
		"decimal, that selects the shard in the key's place")
	flags.StringVar(&f.format, "format", "ndjson", "ndjson, csv (with a header) or lines")
	flags.StringVar(&f.order, "order", "key",
		"key: in order per key, as units, so that runnel's consumers drop doubles; shard: the "+
			"same, with units of many keys in a record; none: such records without an order; "+
			"plain: in order per key, each as it is; chained: plain, by PutRecord, one by one")
	flags.StringVar(&f.resume, "resume", "", "keep the state of the load in this file, and "+
		"continue where the last run with it ended, even after a crash")
	flags.StringVar(&f.skipRefused, "skip-refused", "", "with --resume: append the lines of "+
		"records that were refused or given up to this file, and let the load end without them")
	f.keys.AddTo(command)
	flags.DurationVar(&f.giveUpAfter, "give-up-after", 0,
		"give a record up after this time; 0 never does")
	return command
}

// putCounts is the output of put.
type putCounts struct {
	Records     uint64  `json:"records"`     // acknowledged
	Calls       uint64  `json:"calls"`       // PutRecords calls
	Retried     uint64  `json:"retried"`     // attempts of records beyond their first
	Unknown     uint64  `json:"unknown"`     // (record, call) pairs without an answer
	Undelivered uint64  `json:"undelivered"` // refused or given up
	Skipped     uint64  `json:"skipped"`     // in units of an earlier run, with --resume
	Refused     int     `json:"refused"`     // that the state keeps as refused or given up
	Seconds     float64 `json:"seconds"`
}

func runPut(ctx context.Context, con *console.Console, f *putFlags, files []string) (err error) {
	if f.stream == "" {
		return exit.Usage("--stream is missing: name the stream to put to")
	}
	if f.keys.Given() && f.hashKey != "" {
		return exit.Usage("--keys and --hash-key both give hash keys: choose one")
	}
	if f.skipRefused != "" && f.resume == "" {
		return exit.Usage("--skip-refused needs --resume: its state knows the refused records")
	}
	order, err := producer.ParseOrder(f.order)
	if err != nil {
		return exit.Usage("--order: %w", err)
	}
	format, err := input.New(input.Fields{Format: f.format, Key: f.key, HashKey: f.hashKey})
	if err != nil {
		return err
	}
	format.Advice = "; nothing newer was sent"
	if len(files) == 0 {
		files = []string{"-"}
	}
	if err := checkFiles(files); err != nil {
		return err
	}
	cfg, err := f.to.Load(ctx)
	if err != nil {
		return err
	}
	job := &putJob{
		con: con, stream: f.stream, resume: f.resume, skip: f.skipRefused,
		from: fileSource{format, files},
	}
	if f.resume != "" {
		job.state, err = f.openState(ctx, awsclient.Kinesis(cfg), format, files)
		switch {
		case err != nil && ctx.Err() != nil:
			return exit.ErrInterrupt
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, exit.Outside(job.state.Close())) }()
		if job.state.Done() {
			return job.nothingToDo(ctx)
		}
	}
	client := awsclient.Kinesis(cfg, awsclient.WithoutRetries())
	config := producer.Config{
		Stream: f.stream, Kinesis: client, Reader: client, Order: order,
		GiveUpAfter: f.giveUpAfter, Logger: con.Logger(),
	}
	ownKeys, leave, err := f.keys.Join(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	config.Keys = ownKeys
	return job.run(ctx, config)
}

// checkFiles finds a missing file before the lines of the files before it are put. It opens none:
// a pipe may be among them.
func checkFiles(names []string) error {
	for _, name := range names {
		if name == "-" {
			continue
		}
		if info, err := os.Stat(name); err != nil {
			return exit.Usage("%w; nothing was put", err)
		} else if info.IsDir() {
			return exit.Usage("%s is a folder: name its files; nothing was put", name)
		}
	}
	return nil
}
