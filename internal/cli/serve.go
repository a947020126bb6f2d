package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/server"
)

const defaultData = "runnel-data"

type serveFlags struct {
	addr, data, sync, auth, account, region, chaos string
	memory                                         bool
	streams                                        []string
}

func (a *app) serve() *cobra.Command {
	f := &serveFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: the Kinesis API, and the DynamoDB API for lease tables",
		Long: `Run the server: the Kinesis API, and the part of the DynamoDB API that lease tables
need, on one port. Every acknowledgement is synced to the disk first. It runs until SIGINT or
SIGTERM and finishes what it has accepted; after kill -9 it goes on where it was.`,
		Example: `  runnel serve --data ./runnel-data --stream orders:4
  runnel serve --memory --stream test:1 --chaos 'seed=7 PutRecords:lose-answer%1'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runServe(c, f) },
	}
	flags := command.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:4567",
		"HOST:PORT to listen on; port 0 takes a free one")
	flags.StringVar(&f.data, "data", "",
		"the folder that keeps everything (default ./"+defaultData+")")
	flags.BoolVar(&f.memory, "memory", false, "keep everything in memory only; gone at the end")
	flags.StringSliceVar(&f.streams, "stream", nil,
		"NAME:SHARDS,…: streams to create if they are not there")
	flags.StringVar(&f.sync, "sync", "always",
		"always: synced before the answer; interval=10ms: synced that often, and a power cut may "+
			"lose as much")
	flags.StringVar(&f.auth, "auth", "none",
		"none: whoever reaches the port may do anything; beyond loopback this must be said "+
			"explicitly")
	flags.StringVar(&f.account, "account", "000000000000", "the account of --stream: 12 digits")
	flags.StringVar(&f.region, "region", "us-east-1", "the region of --stream")
	flags.StringVar(&f.chaos, "chaos", "",
		"faults on request, as 'seed=7 PutRecords:lose-answer@3' (see docs/chaos.md)")
	return command
}

func (f *serveFlags) config(c *cobra.Command) (server.Config, error) {
	cfg := server.Config{Memory: f.memory, Dir: f.data}
	if f.memory && f.data != "" {
		return cfg, usageError("--memory and --data exclude each other")
	}
	if !f.memory && f.data == "" {
		cfg.Dir = defaultData
	}
	if f.auth != "none" {
		return cfg, usageError("--auth %s: this version knows only none", f.auth)
	}
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return cfg, usageError("--addr %s: want HOST:PORT", f.addr)
	}
	if !server.IsLoopback(host) && !c.Flags().Changed("auth") {
		return cfg, usageError("--addr %s can be reached from other machines, and nothing checks "+
			"who comes: say --auth none explicitly, or listen on 127.0.0.1", f.addr)
	}
	if interval, ok := strings.CutPrefix(f.sync, "interval="); ok {
		cfg.SyncInterval, err = time.ParseDuration(interval)
		if err != nil || cfg.SyncInterval <= 0 {
			return cfg, usageError("--sync %s: want always, or interval= and a duration "+
				"above 0", f.sync)
		}
	} else if f.sync != "always" {
		return cfg, usageError("--sync %s: want always or interval=DURATION", f.sync)
	}
	if len(f.account) != 12 || strings.Trim(f.account, "0123456789") != "" {
		return cfg, usageError("--account %s: want 12 digits", f.account)
	}
	cfg.Account, cfg.Region = f.account, f.region
	for _, text := range f.streams {
		name, shards, ok := strings.Cut(text, ":")
		count, err := strconv.Atoi(shards)
		if !ok || name == "" || err != nil || count < 1 {
			return cfg, usageError("--stream %s: want NAME:SHARDS, as orders:4", text)
		}
		cfg.Streams = append(cfg.Streams, server.StreamSpec{Name: name, Shards: count})
	}
	plan, err := fault.Parse(f.chaos)
	if err != nil {
		return cfg, usageError("--chaos: %w", err)
	}
	cfg.Faults = plan.Injector()
	return cfg, nil
}

func (a *app) runServe(c *cobra.Command, f *serveFlags) error {
	cfg, err := f.config(c)
	if err != nil {
		return err
	}
	cfg.Logger = a.logger()
	ctx := c.Context()
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", f.addr)
	if err != nil {
		return outsideError(fmt.Errorf("--addr %s: %w", f.addr, err))
	}
	srv, err := server.Open(ctx, cfg)
	if err != nil {
		return outsideError(errors.Join(err, listener.Close()))
	}
	where := "in memory"
	if !f.memory {
		where = "in " + cfg.Dir
		if f.data == "" {
			where += " (--data or --memory to choose)"
		}
	}
	a.say("runnel serve: http://%s, data %s", listener.Addr(), where)
	serveErr := srv.Serve(ctx, listener)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return outsideError(errors.Join(serveErr, srv.Close(closing)))
}
