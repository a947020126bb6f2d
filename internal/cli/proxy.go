package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/keys"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/server"
)

type proxyFlags struct {
	to                            endpoint.Flags
	addr, order                   string
	giveUpAfter, putWait, linger  time.Duration
	maxBufferedRecords            int
	maxBufferedBytes, maxInFlight int
	maxStreams                    int
	tls                           bool
	tlsCert, tlsKey               string
	keys                          keys.Flag
	allowOrigins                  []string
}

func proxyCommand(con *console.Console) *cobra.Command {
	f := &proxyFlags{}
	command := &cobra.Command{
		Use:   "proxy",
		Short: "Run a front door for every language: any SDK's puts, in order per key",
		Long: `Run a front door to Kinesis for every language. It speaks the Kinesis API on a port.

PutRecord and PutRecords go through runnel's producer. It keeps the records of a key in order under
throttling, failures and resharding, and puts the waiting records of a key as one aggregated record.
For consumers that do not open these, say --order plain. The proxy answers a put when the stream has
acknowledged it. It passes every other operation through, signed with its own credentials.

The proxy checks no signature: every client that reaches the port acts with the proxy's credentials.
It listens on this machine alone unless --addr says otherwise. GET /health and GET /metrics report
its state.

It runs until SIGINT or SIGTERM, then delivers the accepted records, answers, and ends with 0.
See docs/proxy.md for the guarantees and for the settings of clients.`,
		Example: `  runnel proxy --local
  AWS_ENDPOINT_URL_KINESIS=http://127.0.0.1:4568 aws kinesis put-record --stream-name orders \
    --partition-key a --data aGVsbG8=`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runProxy(con, c, f) },
	}
	f.to.AddFlags(command, false)
	flags := command.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:4568",
		"HOST:PORT to listen on; port 0 takes a free one")
	flags.StringVar(&f.order, "order", "key",
		"key: in order per key, as units, so that runnel's consumers drop doubles; shard: the "+
			"same, with units of many keys in a record; none: such records without an order; "+
			"plain: in order per key, each as it is; chained: plain, by PutRecord, one by one")
	f.keys.AddTo(command)
	flags.DurationVar(&f.giveUpAfter, "give-up-after", 0,
		"answer that a record failed after this time; 0 never does, and keeps the order")
	flags.DurationVar(&f.putWait, "put-wait", time.Second,
		"how long a request waits for room before it is refused as over the throughput")
	flags.DurationVar(&f.linger, "linger", 0,
		"how long a record may wait for others, to be sent with them")
	flags.IntVar(&f.maxInFlight, "max-in-flight", 8, "calls at a time to each stream")
	flags.IntVar(&f.maxBufferedRecords, "max-buffered-records", 100_000,
		"records of each stream that may wait for it")
	flags.IntVar(&f.maxBufferedBytes, "max-buffered-bytes", 64<<20,
		"bytes of each stream that may wait for it; at least 10485760")
	flags.IntVar(&f.maxStreams, "max-streams", 1000,
		"streams with a producer at a time; an idle one makes room for another")
	addAllowOrigin(flags, &f.allowOrigins)
	flags.BoolVar(&f.tls, "tls", false,
		"encrypt, with a certificate made for this run; its authority, which clients must trust, "+
			"is printed on standard output")
	flags.StringVar(&f.tlsCert, "tls-cert", "",
		"your own certificate, PEM, with its chain; with --tls-key; implies --tls")
	flags.StringVar(&f.tlsKey, "tls-key", "", "the certificate's key, PEM")
	return command
}

func runProxy(con *console.Console, c *cobra.Command, f *proxyFlags) (err error) {
	ctx := c.Context()
	if err := notEmpty(c, "allow-origin", "tls-cert", "tls-key"); err != nil {
		return err
	}
	host, err := checkAddr(ctx, "--addr", f.addr)
	if err != nil {
		return err
	}
	cfg, err := f.config()
	if err != nil {
		return err
	}
	t, encryption, err := f.encrypt()
	if err != nil {
		return err
	}
	aws, err := f.to.Load(ctx)
	if err != nil {
		return err
	}
	cfg.Kinesis, cfg.TLS, cfg.Logger = awsclient.Kinesis(aws), encryption, con.Logger()
	ownKeys, leave, err := f.keys.Join(ctx, aws)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	cfg.Producer.Keys = ownKeys
	p, err := proxy.New(ctx, cfg)
	if err != nil {
		return exit.Usage("%w", err)
	}
	listener, err := listen(ctx, "--addr", f.addr)
	if err != nil {
		return err
	}
	if !server.IsLoopback(host) {
		cfg.Logger.Warn("other machines can reach the proxy and act with its credentials: "+
			"it checks no signature", "addr", f.addr)
	}
	scheme := "http"
	if encryption != nil {
		scheme = "https"
	}
	t.show(con)
	con.Say("runnel proxy: %s://%s, passing to %s", scheme, announced(f.addr, listener),
		p.Endpoint())
	return exit.Outside(p.Serve(ctx, listener))
}

// config reads the flags, except those for TLS and for the endpoint.
func (f *proxyFlags) config() (proxy.Config, error) {
	order, err := producer.ParseOrder(f.order)
	if err != nil {
		return proxy.Config{}, exit.Usage("--order: %w", err)
	}
	if f.putWait <= 0 {
		return proxy.Config{}, exit.Usage("--put-wait %v: want more than 0", f.putWait)
	}
	if _, err := origin.New(f.allowOrigins); err != nil {
		return proxy.Config{}, exit.Usage("--allow-origin: %w", err)
	}
	return proxy.Config{
		PutWait: f.putWait, MaxStreams: f.maxStreams, AllowOrigins: f.allowOrigins,
		Producer: producer.Config{
			Order: order, GiveUpAfter: f.giveUpAfter, Linger: f.linger, MaxInFlight: f.maxInFlight,
			MaxBufferedRecords: f.maxBufferedRecords, MaxBufferedBytes: f.maxBufferedBytes,
		},
	}, nil
}

// encrypt reads the TLS flags. Without them the configuration is nil.
func (f *proxyFlags) encrypt() (trust, *tls.Config, error) {
	switch {
	case f.tlsCert != "" || f.tlsKey != "":
		serving := serveFlags{tlsCert: f.tlsCert, tlsKey: f.tlsKey}
		var cfg server.Config
		t, err := serving.encrypt(&cfg)
		return t, cfg.TLS, err
	case !f.tls:
		return trust{}, nil, nil
	}
	authority, err := localca.New()
	if err != nil {
		return trust{}, nil, exit.Outside(fmt.Errorf("--tls: %w", err))
	}
	return trust{authority: authority}, authority.TLS(hosts(f.addr)...), nil
}
