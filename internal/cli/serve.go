package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/startup"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/server"
)

const defaultData = "runnel-data"

type serveFlags struct {
	addr, data, sync, auth, account, region, chaos string
	tlsCert, tlsKey                                string
	limits, itemsMemory                            string
	tls, child, skipDamaged, acceptClock           bool
	memory                                         memoryFlag
	streams, allowOrigins                          []string
	streamDelay                                    time.Duration
}

func serveCommand(con *console.Console) *cobra.Command {
	f := &serveFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: the Kinesis API, and the DynamoDB API for lease tables",
		Long: `Run the server: the Kinesis API, and the part of the DynamoDB API that lease tables
need, on one port, over HTTP/1.1 and HTTP/2. Every acknowledgement is synced to the disk first.
It runs until SIGINT or SIGTERM and finishes the requests that it has accepted. After kill -9 the
next run continues with the same data.

With --tls the port takes encrypted connections, and plain ones from this machine. The server
makes a certificate authority and keeps it in the data folder. It prints the authority's
certificate, which clients must trust, on standard output:
  runnel serve --tls --quiet > ca.pem     and then     AWS_CA_BUNDLE=ca.pem aws …

With --auth sigv4=FILE every call must be signed with a key of the file, which is written as
~/.aws/credentials. There are no policies: any of the keys may do anything. SIGHUP reads the file
again; without keys it does nothing.

With --verbose each call is a line of the log: its operation, stream, status, records, bytes, time
and request id.`,
		Example: `  runnel serve --data ./runnel-data --stream orders:4
  runnel serve --memory --stream test:1 --chaos 'seed=7 PutRecords:lose-answer%1'
  runnel serve --addr 0.0.0.0:4567 --tls --auth sigv4=keys.ini`,
		Args: func(c *cobra.Command, args []string) error {
			return cmp.Or(f.memory.memoryWord(args), usage.NoArgs(c, args))
		},
		RunE: func(c *cobra.Command, _ []string) error { return runServe(con, c, f) },
	}
	flags := command.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:4567",
		"HOST:PORT to listen on; port 0 takes a free one")
	flags.StringVar(&f.data, "data", "",
		"the folder that keeps everything (default ./"+defaultData+")")
	f.memory.addTo(flags)
	flags.StringSliceVar(&f.streams, "stream", nil,
		"NAME:SHARDS,…: streams to create if they do not exist")
	flags.StringVar(&f.sync, "sync", "always",
		"always: synced before the answer; interval=10ms: synced at this interval, at most "+
			"1m, and a power cut may lose the records of one interval")
	flags.BoolVar(&f.skipDamaged, "skip-damaged", false,
		"let readers go on behind records that are damaged on the disk; without it, reads of them "+
			"fail (see runnel fsck --repair)")
	flags.StringVar(&f.auth, "auth", "none",
		"none: every client may do anything; an address beyond loopback needs the flag "+
			"explicitly. sigv4=FILE: every client with a key of the file may")
	addAllowOrigin(flags, &f.allowOrigins)
	flags.BoolVar(&f.tls, "tls", false,
		"encrypt, with a certificate that the server makes; https://")
	flags.StringVar(&f.tlsCert, "tls-cert", "",
		"your own certificate, PEM, with its chain; with --tls-key; implies --tls")
	flags.StringVar(&f.tlsKey, "tls-key", "", "the certificate's key, PEM")
	flags.StringVar(&f.account, "account", "000000000000", "the account of --stream: 12 digits")
	flags.StringVar(&f.region, "region", "us-east-1", "the region of --stream")
	flags.DurationVar(&f.streamDelay, "stream-delay", 100*time.Millisecond,
		"how long a stream is CREATING, UPDATING or DELETING; 0: no time at all")
	flags.StringVar(&f.limits, "limits", "off",
		"off, aws, or single limits on throughput and calls, as "+
			"'aws,orders/write-bytes=64KiB' (see docs/limits.md)")
	flags.StringVar(&f.itemsMemory, "items-memory", "",
		"SIZE, as 2GiB: the memory that the items of all tables may take; writes that would grow "+
			"them beyond it are throttled (default no bound; see docs/serve.md)")
	flags.BoolVar(&f.acceptClock, "accept-clock", false,
		"the system's clock is right now: follow it, and let data expire; for one start, when "+
			"/health shows that the server's clock differs (see docs/serve.md)")
	flags.StringVar(&f.chaos, "chaos", "",
		"faults on request, as 'seed=7 PutRecords:lose-answer@3' (see docs/chaos.md)")
	flags.BoolVar(&f.child, "child", false,
		"print the URL on standard output, and end with standard input, not with a signal")
	_ = flags.MarkHidden("child") // cannot fail: the flag exists
	return command
}

func addAllowOrigin(flags *pflag.FlagSet, origins *[]string) {
	flags.StringSliceVar(origins, "allow-origin", nil,
		"URL,…: web pages of other machines that may call, as https://app.example.com; pages of "+
			"this machine always may")
}

func runServe(con *console.Console, c *cobra.Command, f *serveFlags) error {
	hangups, stopHangUps := takeHangUps()
	defer stopHangUps()
	cfg, err := f.config(c)
	if err != nil {
		return err
	}
	trust, err := f.encrypt(&cfg)
	if err != nil {
		return err
	}
	cfg.Logger = con.Logger()
	ctx := c.Context()
	if f.child {
		var cancel context.CancelFunc
		ctx, cancel = untilInputEnds(ctx, con.In)
		defer cancel()
	}
	listener, err := listen(ctx, "--addr", f.addr)
	if err != nil {
		return err
	}
	if cfg.ItemsMemory > 0 || f.memory.size > 0 {
		available := availableMemory(os.DirFS("/"))
		warnMemory(cfg.Logger, "--items-memory", cfg.ItemsMemory, available)
		warnMemory(cfg.Logger, "--memory", f.memory.size, available)
	}
	if f.memory.on {
		defer boundHeap(cfg.MemoryLimit)()
	}
	srv, err := server.Open(ctx, cfg)
	if err != nil {
		return exit.Outside(errors.Join(err, listener.Close()))
	}
	where := fmt.Sprintf("in memory, at most %d MiB", cfg.MemoryLimit>>20)
	if !f.memory.on {
		where = "in " + cfg.Dir
		if f.data == "" {
			where += " (--data or --memory to choose)"
		}
	}
	scheme := "http"
	if cfg.TLS != nil {
		scheme = "https"
	}
	trust.show(con)
	if use, err := srv.DiskUse(); err == nil && !f.memory.on {
		where += fmt.Sprintf(", which takes %.1f MiB", float64(use.Bytes())/(1<<20))
	}
	url := scheme + "://" + announced(f.addr, listener)
	con.Say("runnel serve: %s, data %s", url, where)
	if f.child {
		_, _ = fmt.Fprintln(con.Out, url)
	}
	var settling sync.WaitGroup
	defer settling.Wait()
	up, stop := context.WithCancel(ctx)
	defer stop()
	settling.Go(func() { settle(up, con) })
	go f.readKeysAgain(up, con, srv, hangups) // no wait: the file may be a pipe without a writer
	serveErr := srv.Serve(ctx, listener)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return exit.Outside(errors.Join(serveErr, srv.Close(closing)))
}

// startTime is the time after which a server's start is over, and its first calls, too, which touch
// more of the binary.
const startTime = time.Second

// settle gives the memory that only the start needed back once the start is over. It returns
// earlier if ctx ends.
func settle(ctx context.Context, con *console.Console) {
	if retry.Wait(ctx, startTime) != nil {
		return
	}
	if err := startup.Settle(); err != nil {
		con.Logger().Debug("the memory of the start stays", "error", err)
	}
}

// untilInputEnds returns a context that ends with standard input, which the parent of a child
// process holds open for as long as it lives. Signals are the parent's: a terminal sends them
// to both.
func untilInputEnds(
	ctx context.Context, in io.Reader,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	go func() { // a read of standard input cannot be cut short: the process ends with it
		_, _ = io.Copy(io.Discard, in)
		cancel(exit.ErrStop)
	}()
	return ctx, func() { cancel(nil) }
}
