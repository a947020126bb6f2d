// Package runneltest is httptest for streams: it runs a server inside the test's process. The
// server has the Kinesis API and the part of the DynamoDB API that lease tables need.
//
//	server := runneltest.NewServer(t, runneltest.WithStream("orders", 4))
//	client := server.Kinesis() // or the SDK's clients, made with server.AWSConfig()
//
// It is the server of `runnel serve`, not an imitation. It can inject faults (WithFaults,
// SetFaults), and it can be killed and restarted (Kill, Restart). With InMemory it runs in virtual
// time inside a testing/synctest bubble.
package runneltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// closeTimeout limits the time to close a server.
const closeTimeout = 30 * time.Second

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	cfg       server.Config
	fs        vfs.FS // nil: the operating system's
	faults    *fault.Injector
	network   *network
	began     time.Time
	random    *rand.Rand         // of crashes; nil without WithCrashes
	authority *localca.Authority // nil without WithTLS
	aws       aws.Config
	kinesis   *kinesis.Client
	tables    *dynamodb.Client

	// turn guards the fields below: the goroutine that kills, restarts or closes the server puts
	// a token into it. It is a channel, not a mutex, because the token is held while connections
	// end. In a synctest bubble a goroutine that waits for a mutex would stop the virtual clock.
	turn    chan struct{}
	running *running // nil while killed, and after Close
	closed  bool
}

// running is the server from one start to its end.
type running struct {
	server *server.Server
	stop   context.CancelFunc
	served chan error
	// limit makes the context for closing. It does not end with the context of the start.
	limit func() (context.Context, context.CancelFunc)
}

// ErrClosed is returned by Restart after Close.
var ErrClosed = errors.New("runneltest: the server is closed")

// NewServer starts a server and closes it at the end of the test.
func NewServer(t testing.TB, options ...Option) *Server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := Start(t.Context(), append([]Option{WithLogger(log)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("runneltest: close: %v", err)
		}
	})
	return s
}

// Start starts a server outside a test. ctx applies only to the start; the caller ends the server
// with Close.
func Start(ctx context.Context, options ...Option) (*Server, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	clientOptions, err := settings.clientOptions()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: settings.server, fs: settings.fs, faults: settings.faults,
		network: &settings.network, random: settings.random,
		authority: settings.authority, began: time.Now(),
		turn: make(chan struct{}, 1),
	}
	life, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	s.running = life
	s.aws = awsclient.ForServer(s.Endpoint(), s.cfg.Account, s.region(), s.network.dial,
		clientOptions...)
	s.kinesis, s.tables = awsclient.Kinesis(s.aws), awsclient.DynamoDB(s.aws)
	return s, nil
}

// boot is of a machine that had been up for a day, so that data expire, whatever the uptime of the
// test's own machine is.
func (s *Server) boot() (id string, since time.Duration) {
	return "runneltest", 24*time.Hour + time.Since(s.began)
}

func (s *Server) start(ctx context.Context) (*running, error) {
	opened, err := server.Open(ctx, s.cfg, seam.OnFS(s.fs), seam.WithFaults(s.faults),
		seam.WithBoot(s.boot))
	if err != nil {
		return nil, err
	}
	listener, err := s.network.listen(ctx)
	if err != nil {
		return nil, errors.Join(err, opened.Close(ctx))
	}
	under := context.WithoutCancel(ctx) // the server lives until it is closed
	serving, stop := context.WithCancel(under)
	life := &running{server: opened, stop: stop, served: make(chan error, 1)}
	life.limit = func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(under, closeTimeout)
	}
	go func() { life.served <- opened.Serve(serving, listener) }()
	return life, nil
}

func (s *Server) region() string {
	if s.cfg.Region != "" {
		return s.cfg.Region
	}
	return awsclient.LocalRegion
}

// Endpoint returns the server's URL. With InMemory only the clients of AWSConfig reach it.
func (s *Server) Endpoint() string {
	if s.authority != nil {
		return "https://" + s.network.addr
	}
	return "http://" + s.network.addr
}

// AWSConfig returns the configuration for clients of the AWS SDK for Go v2: the endpoint, the
// region, credentials that need no AWS account, and an HTTP client that all of them share.
func (s *Server) AWSConfig() aws.Config { return s.aws.Copy() }

// Kinesis returns a client with the SDK's usual retries.
func (s *Server) Kinesis() *kinesis.Client { return s.kinesis }

// DynamoDB returns a client with the SDK's usual retries.
func (s *Server) DynamoDB() *dynamodb.Client { return s.tables }

// SetFaults replaces the faults; "" removes all of them. The count of calls restarts.
func (s *Server) SetFaults(spec string) error {
	plan, err := fault.Parse(spec)
	if err != nil {
		return fmt.Errorf("runneltest: %w", err)
	}
	s.faults.Set(plan)
	return nil
}

// FaultCounts returns the number of times that each fault struck since the start. The keys have
// the form "Operation:fault", as "PutRecords:lose-answer".
func (s *Server) FaultCounts() map[string]int { return s.faults.Counts() }

// Kill ends the server like kill -9 and, with WithCrashes, like a power cut: it cuts every
// connection, answers no call and cleans up nothing. Without WithCrashes the calls under way still
// reach the disk. Connections are refused until Restart.
func (s *Server) Kill() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.kill()
}

// kill does the work of Kill. With WithCrashes the old server may still write to the old disk,
// which is not used again.
func (s *Server) kill() error {
	life := s.running
	if life == nil {
		return nil
	}
	s.running = nil
	s.network.cut()
	disk, crashable := s.fs.(*vfs.Mem)
	crashable = crashable && s.random != nil
	if crashable {
		s.fs = disk.Crash(s.random)
	}
	life.stop()
	<-life.served //nolint:errcheck // that the listener was closed under it is no fault
	ctx, cancel := life.limit()
	defer cancel()
	err := life.server.Close(ctx)
	if crashable {
		return nil // errors of the old disk do not matter
	}
	return err
}

// Restart kills the server if it is running, and starts it again on its data, at the same
// address. The faults stay, and the count of calls goes on.
func (s *Server) Restart(ctx context.Context) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return ErrClosed
	}
	if err := s.kill(); err != nil {
		return err
	}
	life, err := s.start(ctx)
	if err != nil {
		return err
	}
	s.running = life
	return nil
}

// Close waits for the calls under way to finish and ends the server. Later calls of Close return
// nil.
func (s *Server) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	life := s.running
	s.running, s.closed = nil, true
	s.aws.HTTPClient.(*awsclient.HTTPClient).CloseIdleConnections()
	if life == nil {
		return nil
	}
	life.stop()
	err := <-life.served
	s.network.cut()
	ctx, cancel := life.limit()
	defer cancel()
	return errors.Join(err, life.server.Close(ctx))
}
