package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

type restoreFlags struct {
	to                              endpoint.Flags
	place                           placeFlags
	stream, resume, of, from, until string
	skipRefused                     string
	data                            bool
	options                         archive.MergeOptions
}

func restoreCommand(con *console.Console) *cobra.Command {
	f := &restoreFlags{}
	command := &cobra.Command{
		Use:   "restore DIR|s3://BUCKET/PREFIX",
		Short: "Print an archive's records, or put them into a stream",
		Long: `Print an archive's records, or put them into a stream with --stream.

The records of the archive's shards are merged by their arrival times; a shard's come behind those
of its parents, so one key's records are in their order. Without --stream a line is the object that
the archive has, or with --data the record's data alone.

With --stream they are put with their partition keys and explicit hash keys, in order per key. With
--resume STATE the same command continues a restore that was interrupted, by kill -9 or a crash:
nothing is lost, and runnel's consumers drop records that were sent twice. The first run decides
which part of the archive is restored, and leaves out all later links.

A damaged or missing link ends the command with status 3 before any record of it, or behind it, is
sent. Kinesis does not return the hash keys of records that were put one by one: they are restored
by their partition keys alone.

A record that the stream does not take is named, the others are restored, and the status is 1. Such
are odd keys and aggregates that could not be opened, and with --resume a record without room for an
identity (near the stream's limit). With --resume the state keeps them: every run ends with 1 until
--skip-refused FILE has appended their objects to FILE.`,
		Example: "  runnel restore archive --data\n" +
			"  runnel restore archive --local --stream copy --resume copy.state",
		Args: usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.place.like(c)
			if err := notEmpty(c, "stream", "resume", "skip-refused"); err != nil {
				return err
			}
			return runRestore(c.Context(), con, f, args[0])
		},
	}
	f.to.AddFlags(command, false)
	f.place.addFlags(command, false, false)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "put the records into this stream")
	flags.StringVar(&f.resume, "resume", "", "with --stream: keep the state in this file, and "+
		"continue where the last run with it ended")
	flags.StringVar(&f.skipRefused, "skip-refused", "", "with --resume: append the objects of "+
		"records that the stream refuses to this file, and forget them")
	flags.StringVar(&f.of, "stream-of", "", "NAME or NAME@MILLISECONDS: the stream to restore, if "+
		"the archive holds several")
	flags.StringVar(&f.from, "from", "", "only records that arrived at this RFC 3339 time or later")
	flags.StringVar(&f.until, "until", "", "only records that arrived before this RFC 3339 time")
	flags.BoolVar(&f.data, "data", false, "print the data alone, each followed by a line break")
	return command
}

// check reads the flags.
func (f *restoreFlags) check() error {
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"--from", f.from, &f.options.From}, {"--until", f.until, &f.options.Until}} {
		if t.text == "" {
			continue
		}
		var err error
		if *t.to, err = parseTime(t.name, t.text); err != nil {
			return err
		}
	}
	switch {
	case f.stream == "" && f.resume != "":
		return exit.Usage("--resume needs --stream: a restore to standard output keeps no state")
	case f.resume == "" && f.skipRefused != "":
		return exit.Usage("--skip-refused needs --resume: its state knows the refused records")
	case f.stream != "" && f.data:
		return exit.Usage("--data is for standard output, and --stream puts nothing but the data")
	case !f.options.Until.IsZero() && !f.options.From.Before(f.options.Until):
		return exit.Usage("--until %s is not after --from %s", f.until, f.from)
	}
	return nil
}

// notEmpty refuses flags that are given and empty, as by a variable that is not set.
func notEmpty(command *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := command.Flags().Lookup(name)
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok { // whose text is "[]"
			empty = len(list.GetSlice()) == 0
		}
		if flag.Changed && empty {
			return exit.Usage("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

// parseTime reads the time of a flag.
func parseTime(flag, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Unix() < 0 {
		return t, exit.Usage("%s %q: want a time after 1970, as 2026-01-31T08:00:00Z", flag, text)
	}
	return t, nil
}

func runRestore(ctx context.Context, con *console.Console, f *restoreFlags, place string) error {
	if err := f.check(); err != nil {
		return err
	}
	reader, err := f.place.reader(ctx, place)
	if err != nil {
		return err
	}
	source := &archiveSource{reader: reader, options: f.options}
	if source.stream, err = f.choose(ctx, reader, place); err != nil {
		return err
	}
	named := map[runnel.ShardID]runnel.Position{} // the last gap: a resumed restore reads twice
	source.options.OnGap = func(shard runnel.ShardID, gap sink.Gap) {
		if !named[shard].Less(gap.Before) {
			return
		}
		named[shard] = gap.Before
		con.Say("%s: the archive has a gap between %s and %s: %s", shard, gap.After, gap.Before,
			gap.Reason)
	}
	if f.stream != "" {
		return f.put(ctx, con, source, place)
	}
	if source.part, err = reader.Part(ctx, source.stream); err != nil {
		return outcome(ctx, err)
	}
	signal.Ignore(syscall.SIGPIPE) // the failed write ends the command without a message
	return outcome(ctx, f.print(ctx, con.Out, source))
}

// outcome sets the exit status of an error of reading.
func outcome(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case errors.As(err, new(*exit.Error)):
		return err
	}
	return exit.Outside(err)
}

// print prints the records.
func (f *restoreFlags) print(ctx context.Context, to io.Writer, from *archiveSource) error {
	out := bufio.NewWriterSize(to, 1<<16)
	var line []byte
	for record, err := range from.records(ctx) {
		if err != nil {
			return errors.Join(err, written(out.Flush()))
		}
		if line = line[:0]; f.data {
			line = append(line, record.Data...)
		} else {
			line = archive.AppendRecord(line, &record)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return written(err)
		}
	}
	return written(out.Flush())
}

// written returns the error of a write to standard output; a reader that has ended is none.
func written(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// choose returns the stream of the archive.
func (f *restoreFlags) choose(
	ctx context.Context, reader *archive.Reader, place string,
) (archive.Stream, error) {
	all, err := reader.Streams(ctx)
	if err != nil {
		return archive.Stream{}, outcome(ctx, err)
	}
	var chosen []archive.Stream
	var names []string
	for _, stream := range all {
		names = append(names, stream.String())
		if f.of == "" || stream.Is(f.of) {
			chosen = append(chosen, stream)
		}
	}
	there := strings.Join(names, ", ")
	switch {
	case len(all) == 0:
		return archive.Stream{}, exit.Usage("%s holds no archive: name the place of runnel "+
			"archive --to, which holds NAME@MILLISECONDS", place)
	case len(chosen) == 0:
		return archive.Stream{}, exit.Usage("--stream-of %s: the archive has %s", f.of, there)
	case len(chosen) > 1:
		return archive.Stream{}, exit.Usage("the archive holds several streams: choose one with "+
			"--stream-of: %s", there)
	}
	return chosen[0], nil
}

// put puts the records into the stream.
func (f *restoreFlags) put(
	ctx context.Context, con *console.Console, source *archiveSource, place string,
) (err error) {
	cfg, err := f.to.Load(ctx)
	if err != nil {
		return err
	}
	job := &putJob{
		con: con, stream: f.stream, resume: f.resume, skip: f.skipRefused, from: source,
	}
	if f.resume == "" {
		source.part, err = source.reader.Part(ctx, source.stream)
	} else if job.state, err = f.openState(ctx, awsclient.Kinesis(cfg), source, place); err == nil {
		defer func() { err = errors.Join(err, exit.Outside(job.state.Close())) }()
		if job.state.Done() {
			return job.nothingToDo(ctx)
		}
	}
	if err != nil {
		return outcome(ctx, err)
	}
	client := awsclient.Kinesis(cfg, awsclient.WithoutRetries())
	return job.run(ctx, producer.Config{
		Stream: f.stream, Kinesis: client, Reader: client, Logger: con.Logger(),
	})
}

// archiveFormat marks the state of a restore.
const archiveFormat = "archive"

// openState opens the journal. The part of the archive is in the journal, as the header of its one
// input: the first run puts it there, and the others read it.
func (f *restoreFlags) openState(
	ctx context.Context, client *kinesis.Client, source *archiveSource, place string,
) (*putState, error) {
	load := putlog.Identity{
		Stream: streamref.Name(f.stream), Format: archiveFormat, Order: producer.OrderKey.String(),
		Key:   fmt.Sprintf("%s, --from %q, --until %q", source.stream, f.from, f.until),
		Files: []putlog.File{{Name: place}},
	}
	before, err := putlog.LoadOf(f.resume)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if source.part, err = source.reader.Part(ctx, source.stream); err != nil {
			return nil, err
		}
		text, err := json.Marshal(source.part)
		if err != nil {
			return nil, err
		}
		load.Columns = []string{string(text)}
	case err != nil:
		return nil, stateError(f.resume, err)
	case before.Format == archiveFormat && len(before.Columns) == 1:
		load.Columns = before.Columns
		if err := json.Unmarshal([]byte(before.Columns[0]), &source.part); err != nil {
			return nil, exit.Usage("--resume %s: %w", f.resume, putlog.ErrDamaged)
		}
	}
	if load.Created, err = streamCreated(ctx, client, f.stream, 0); err != nil {
		return nil, exit.Outside(endpoint.Hint(err, f.stream))
	}
	return openJournal(ctx, f.resume, load, source)
}

// archiveSource has the records of an archive.
type archiveSource struct {
	reader  *archive.Reader
	stream  archive.Stream
	part    archive.Part
	options archive.MergeOptions
	taken   atomic.Int64
}

func (s *archiveSource) records(ctx context.Context) func(func(runnel.Record, error) bool) {
	return s.reader.Merge(ctx, s.stream, s.part, s.options)
}

func (s *archiveSource) read(ctx context.Context, take func(input.Line) error) error {
	s.taken.Store(0)
	for record, err := range s.records(ctx) {
		if err != nil {
			return outcome(ctx, err)
		}
		s.taken.Add(1)
		err := take(input.Line{
			Key: record.PartitionKey, HashKey: record.ExplicitHashKey, Data: record.Data,
			Where: func() string {
				return fmt.Sprintf("%s at %s", record.ShardID, record.Position)
			},
			Kept: func() []byte { return archive.AppendRecord(nil, &record) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *archiveSource) bar(took time.Duration) string {
	n := s.taken.Load()
	return fmt.Sprintf("read %s records, %s/s", console.Thousands(n),
		console.Thousands(console.Rate(n, took)))
}

func (*archiveSource) advice() string { return "" }
func (*archiveSource) fixed() bool    { return true }
