package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/producer"
)

type demoFlags struct {
	records, shards, workers int
	seed                     uint64
	input, key, dir          string
}

func (a *app) demo() *cobra.Command {
	f := &demoFlags{}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole pipeline on this machine, with nothing installed",
		Long: `Show the whole pipeline on this machine, with nothing installed: a server on a
loopback port, a producer that keeps order per key, a fleet of workers that share the shards through
the lease table alone, and an archive that takes each record exactly once. While records flow shards
are split and merged, the server is killed with -9 and started again on its data, and one worker is
stopped without a goodbye.

The verdict is computed from the archive itself. Status 1 if anything is lost, doubled or out of
order. Without --input it makes repository events from --seed.`,
		Example: `  runnel demo
  runnel demo --input events.ndjson.gz --key repo --dir ./demo`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runDemo(c.Context(), f) },
	}
	flags := command.Flags()
	flags.IntVar(&f.records, "records", 100_000, "how many events to make")
	flags.IntVar(&f.shards, "shards", 4, "shards to begin with")
	flags.IntVar(&f.workers, "workers", 3,
		"workers of the fleet, at least 2; one is stopped midway")
	flags.Uint64Var(&f.seed, "seed", 1, "the seed of the events")
	flags.StringVar(&f.input, "input", "",
		"a file of NDJSON, plain, gzip or zstd, in place of made events")
	flags.StringVar(&f.key, "key", "",
		"with --input: the partition key, a field's name or a JSON pointer")
	flags.StringVar(&f.dir, "dir", "",
		"keep data and archive in this folder (default: a temporary one, removed)")
	return command
}

func (f *demoFlags) validate() error {
	switch {
	case f.records < 1 || f.shards < 1:
		return exit.Usage("--records and --shards want at least 1")
	case f.workers < 2:
		return exit.Usage("--workers %d: want at least 2, since one is stopped midway", f.workers)
	case (f.input == "") != (f.key == ""):
		return exit.Usage("--input and --key go together: name the file and its key field")
	}
	return nil
}

const demoStream = "demo"

// demo is one run of the demonstration.
type demo struct {
	app    *app
	flags  *demoFlags
	dir    string
	server *demoServer
	source func(context.Context) iter.Seq2[event, error]
	total  int64
	fleet  *fleet
	show   *console.Progress
	told   chan string // messages for the screen

	taken   atomic.Int64
	acked   atomic.Int64
	started time.Time
	putTook time.Duration
}

func (a *app) runDemo(ctx context.Context, f *demoFlags) (err error) {
	if err := f.validate(); err != nil {
		return err
	}
	d := &demo{app: a, flags: f, show: a.NewProgress(), told: make(chan string, newsBuffer)}
	if err := d.openSource(ctx); err != nil {
		return err
	}
	remove, err := d.openDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exit.Outside(remove())) }()
	d.server, err = startDemoServer(ctx, a, filepath.Join(d.dir, "data"), f.shards)
	if err != nil && ctx.Err() != nil {
		return exit.ErrInterrupt
	}
	if err != nil {
		return exit.Outside(err)
	}
	defer func() { err = errors.Join(err, exit.Outside(d.server.close(ctx))) }()
	a.Say("server   %s  (open to any AWS client while this runs)\nfolder   %s\n",
		d.server.endpoint, d.dir)
	if err := d.run(ctx); err != nil {
		d.show.Clear()
		if ctx.Err() != nil {
			return exit.ErrInterrupt
		}
		return exit.Outside(err)
	}
	return d.verdict(ctx)
}

// openDir makes the folder of the run. remove deletes it at the end, but a folder that the user
// named stays.
func (d *demo) openDir() (remove func() error, err error) {
	d.dir = d.flags.dir
	if d.dir == "" {
		d.dir, err = os.MkdirTemp("", "runnel-demo-")
		return func() error { return os.RemoveAll(d.dir) }, exit.Outside(err)
	}
	if old, err := os.ReadDir(d.dir); err == nil && len(old) > 0 {
		return nil, exit.Usage("--dir %s is not empty: name a new folder", d.dir)
	}
	return func() error { return nil }, nil
}

// openSource sets the source of the events. The demo reads it twice, to put and to verify.
func (d *demo) openSource(ctx context.Context) error {
	if d.flags.input == "" {
		d.total = int64(d.flags.records)
		d.source = func(context.Context) iter.Seq2[event, error] {
			return func(yield func(event, error) bool) {
				for e := range repositoryEvents(d.flags.seed, d.flags.records) {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
		return nil
	}
	format, err := input.New(input.Fields{Format: "ndjson", Key: d.flags.key})
	if err != nil {
		return err
	}
	d.source = func(ctx context.Context) iter.Seq2[event, error] {
		return fileEvents(ctx, format, d.flags.input)
	}
	for _, err := range d.source(ctx) { // counts, and finds what is wrong before anything starts
		if err != nil {
			return err
		}
		d.total++
	}
	if d.total == 0 {
		return exit.Usage("--input %s holds no line", d.flags.input)
	}
	return nil
}

// fileEvents reads a file's lines. A line's number is its id, so that lines may be equal.
func fileEvents(ctx context.Context, format *input.Format, name string) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		number := 0
		err := format.ReadFile(ctx, name, func(l input.Line) error {
			number++
			e := event{id: fmt.Sprint(number), key: l.Key, data: bytes.Clone(l.Data)}
			if !yield(e, nil) {
				return exit.ErrStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, exit.ErrStop) {
			yield(event{}, err)
		}
	}
}

// run produces, reshards, loses a worker, and returns when everything is archived.
func (d *demo) run(ctx context.Context) error {
	d.started = time.Now()
	d.fleet = newFleet(d)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range d.flags.workers {
		if err := d.fleet.start(ctx); err != nil {
			return err
		}
	}
	drawn := d.draw(ctx)
	staged := d.stage(ctx)
	err := d.produce(ctx)
	d.putTook = time.Since(d.started)
	if stageErr := <-staged; err == nil {
		err = stageErr
	}
	if err == nil {
		err = d.fleet.drain(ctx)
	}
	err = errors.Join(err, d.fleet.stop())
	cancel(exit.ErrStop)
	<-drawn
	return err
}

func (d *demo) produce(ctx context.Context) error {
	p, err := producer.New(ctx, producer.Config{
		Stream: demoStream, Client: d.server.kinesis(), Reader: d.server.kinesis(),
		Logger: d.logger(),
		OnResult: func(_ runnel.Record, result producer.Result) {
			if result.Err == nil {
				d.acked.Add(1)
			}
		},
	})
	if err != nil {
		return err
	}
	for e, err := range d.source(ctx) {
		if err == nil {
			err = p.PutFunc(ctx, runnel.Record{PartitionKey: e.key, Data: e.data}, nil)
		}
		if err != nil {
			return errors.Join(err, p.Close(ctx))
		}
		d.taken.Add(1)
	}
	return p.Close(ctx)
}
