package demo

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/producer"
)

// stream is the demo's stream.
const stream = "demo"

// Options are the flags of the demo.
type Options struct {
	Records, Shards int // at least 1; Records counts without Input only
	Workers         int // at least 2, because one is stopped midway
	Seed            uint64
	Input, Key      string // a file of NDJSON and its key field; "" makes events from Seed
	Dir             string // keeps data and archive; "": a temporary folder, removed at the end
}

func (o *Options) validate() error {
	switch {
	case o.Records < 1 || o.Shards < 1:
		return exit.Usage("--records and --shards want at least 1")
	case o.Workers < 2:
		return exit.Usage("--workers %d: want at least 2, since one is stopped midway", o.Workers)
	case (o.Input == "") != (o.Key == ""):
		return exit.Usage("--input and --key go together: name the file and its key field")
	}
	return nil
}

// demo is one run of the demonstration.
type demo struct {
	con     *console.Console
	options Options
	dir     string
	events  source
	server  *server
	fleet   *fleet
	screen  *screen

	acked   atomic.Int64 // records
	started time.Time
	putTook time.Duration
}

// Run shows the demo on the console and prints its verdict. The error has the status of wrong usage
// for bad options or input, and status 1 if the archive differs from the events.
func Run(ctx context.Context, con *console.Console, options Options) (err error) {
	if err := options.validate(); err != nil {
		return err
	}
	d := &demo{con: con, options: options, screen: newScreen(con)}
	if d.events, err = openSource(ctx, options); err != nil {
		return err
	}
	remove, err := d.openDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exit.Outside(remove())) }()
	d.server = &server{
		dir: filepath.Join(d.dir, "data"), shards: options.Shards, stderr: con.Err,
		logFormat: con.LogFormat,
	}
	if err := d.server.open(ctx); err != nil {
		if ctx.Err() != nil {
			return exit.ErrInterrupt
		}
		return exit.Outside(err)
	}
	defer func() { err = errors.Join(err, exit.Outside(d.server.close(ctx))) }()
	con.Say("server   %s  (open to any AWS client while this runs)\nfolder   %s\n",
		d.server.endpoint, d.dir)
	if err := d.run(ctx); err != nil {
		d.screen.clear()
		if ctx.Err() != nil {
			return exit.ErrInterrupt
		}
		return exit.Outside(err)
	}
	return d.verify(ctx)
}

// openDir makes the folder of the run. remove deletes it at the end, but a folder that the user
// named stays.
func (d *demo) openDir() (remove func() error, err error) {
	d.dir = d.options.Dir
	if d.dir == "" {
		d.dir, err = os.MkdirTemp("", "runnel-demo-")
		return func() error { return os.RemoveAll(d.dir) }, exit.Outside(err)
	}
	if old, err := os.ReadDir(d.dir); err == nil && len(old) > 0 {
		return nil, exit.Usage("--dir %s is not empty: name a new folder", d.dir)
	}
	return func() error { return nil }, nil
}

// run produces, reshards, loses a worker, and returns when everything is archived.
func (d *demo) run(ctx context.Context) error {
	d.started = time.Now()
	logger := demoLogger(d.con)
	d.fleet = &fleet{
		archive: filepath.Join(d.dir, "archive"), kinesis: d.server.kinesis(),
		dynamoDB: d.server.dynamoDB(), logger: logger, news: d.screen.news,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range d.options.Workers {
		if err := d.fleet.start(ctx); err != nil {
			return err
		}
	}
	drawn := d.screen.draw(ctx, d.lines)
	play := &stage{server: d.server, fleet: d.fleet, news: d.screen.news}
	staged := play.run(ctx, func() float64 {
		return float64(d.acked.Load()) / float64(d.events.total)
	})
	err := d.produce(ctx, logger)
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

// produce puts all events and returns when the stream has acknowledged them.
func (d *demo) produce(ctx context.Context, logger *slog.Logger) error {
	p, err := producer.New(ctx, producer.Config{
		Stream: stream, Kinesis: d.server.kinesis(), Reader: d.server.kinesis(),
		Logger: logger,
		OnResult: func(_ runnel.Record, result producer.Result) {
			if result.Err == nil {
				d.acked.Add(1)
			}
		},
	})
	if err != nil {
		return err
	}
	for e, err := range d.events.read(ctx) {
		if err == nil {
			err = p.PutFunc(ctx, runnel.Record{PartitionKey: e.key, Data: e.data}, nil)
		}
		if err != nil {
			return errors.Join(err, p.Close(ctx))
		}
	}
	return p.Close(ctx)
}
