// Package runneltest is httptest for streams: a test's own server of the Kinesis API, and of
// the part of the DynamoDB API that lease tables need, in the process.
//
//	server := runneltest.NewServer(t, runneltest.WithStream("orders", 4))
//	client := server.Kinesis() // or the SDK's clients, made with server.AWSConfig()
//
// It is the server of `runnel serve` and not an imitation. It misbehaves on request
// (WithFaults, SetFaults), can be killed and restarted (Kill, Restart), and with InMemory runs
// in virtual time inside a testing/synctest bubble.
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

// closeTimeout bounds the end of a server.
const closeTimeout = 30 * time.Second

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	cfg       server.Config
	fs        vfs.FS // nil: the operating system's
	faults    *fault.Injector
	network   *network
	random    *rand.Rand         // of crashes; nil without WithCrashes
	authority *localca.Authority // nil without WithTLS
	aws       aws.Config
	kinesis   *kinesis.Client
	tables    *dynamodb.Client

	// turn holds the token of whoever kills, restarts or closes the server, and so uses the
	// fields below: a channel and no mutex, since it is held while connections end, which in a
	// bubble of virtual time must not stop the clock for those who wait for it.
	turn    chan struct{}
	running *running // nil while killed, and after Close
	closed  bool
}

// running is one life of the server.
type running struct {
	server *server.Server
	stop   context.CancelFunc
	served chan error
	// limit makes the context for the end, which the start's own does not end before.
	limit func() (context.Context, context.CancelFunc)
}

// ErrClosed is returned by Restart after Close.
var ErrClosed = errors.New("runneltest: the server is closed")

// NewServer starts a server that ends with the test.
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

// Start starts a server outside a test. ctx bounds the start alone; the caller ends the server
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
		authority: settings.authority,
		turn:      make(chan struct{}, 1),
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

func (s *Server) start(ctx context.Context) (*running, error) {
	opened, err := server.Open(ctx, s.cfg, seam.OnFS(s.fs), seam.WithFaults(s.faults))
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

// Endpoint is the server's URL. With InMemory only the clients of AWSConfig reach it.
func (s *Server) Endpoint() string {
	if s.authority != nil {
		return "https://" + s.network.addr
	}
	return "http://" + s.network.addr
}

// AWSConfig configures clients of the AWS SDK for Go v2: endpoint, region, credentials that
// need no AWS account, and an HTTP client that all of them share.
func (s *Server) AWSConfig() aws.Config { return s.aws.Copy() }

// Kinesis is a client with the SDK's usual retries.
func (s *Server) Kinesis() *kinesis.Client { return s.kinesis }

// DynamoDB is a client with the SDK's usual retries.
func (s *Server) DynamoDB() *dynamodb.Client { return s.tables }

// SetFaults replaces the faults; "" ends them. The counting of calls begins again.
func (s *Server) SetFaults(spec string) error {
	plan, err := fault.Parse(spec)
	if err != nil {
		return fmt.Errorf("runneltest: %w", err)
	}
	s.faults.Set(plan)
	return nil
}

// FaultCounts returns how often each fault struck since the start, by "Operation:fault", as
// "PutRecords:lose-answer".
func (s *Server) FaultCounts() map[string]int { return s.faults.Counts() }

// Kill ends the server as kill -9 and, with WithCrashes, a power cut do: every connection is
// cut, no call gets its answer, nothing is tidied up. Without WithCrashes the calls under way
// still reach the disk. Until Restart nobody listens.
func (s *Server) Kill() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.kill()
}

// kill: the remains of the old life end on the old disk, which nobody sees again.
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
		return nil // whatever the old disk made of it
	}
	return err
}

// Restart kills the server if it is running, and starts it again on what is there, at the same
// address. The faults stay, the counting of calls goes on.
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

// Close lets the calls under way finish and ends the server. Later calls return nil.
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
