package runneltest

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server"
)

// Option configures a Server.
type Option func(*settings) error

// memoryLogFile is Config.LogFileSize in memory. It is small, because each start and restart of a
// test's server allocates and scans that many bytes.
const memoryLogFile = 1 << 20

type settings struct {
	server    server.Config
	fs        vfs.FS // nil: the operating system's
	faults    *fault.Injector
	network   network
	crashable bool
	random    *rand.Rand
	authority *localca.Authority // nil without WithTLS
	keys      []wire.Key         // of WithCredentials
}

func newSettings(options []Option) (*settings, error) {
	s := &settings{network: network{addr: "127.0.0.1:0"}}
	s.server.Logger = slog.New(slog.DiscardHandler)
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("runneltest: %w", err)
		}
	}
	if s.faults == nil {
		s.faults = new(fault.Injector)
	}
	if err := s.secure(); err != nil {
		return nil, err
	}
	switch {
	case s.crashable && s.server.Dir != "":
		return nil, fmt.Errorf("runneltest: WithCrashes is a disk in memory: it excludes WithDir")
	case s.crashable:
		s.fs = vfs.NewCrashable()
	case s.server.Dir == "":
		s.server.Memory, s.fs = true, vfs.NewMem()
	}
	if s.server.Dir == "" {
		s.server.LogFileSize = memoryLogFile
	}
	return s, nil
}

// WithStream creates a stream with this number of shards at the start, unless it exists.
func WithStream(name string, shards int) Option {
	return func(s *settings) error {
		s.server.Streams = append(s.server.Streams, server.StreamSpec{Name: name, Shards: shards})
		return nil
	}
}

// WithFaults injects faults from the first call on, as `runnel serve --chaos` does. `runnel serve
// --help` and docs/chaos.md describe the language. Example: "PutRecords:lose-answer@3".
func WithFaults(spec string) Option {
	return func(s *settings) error {
		plan, err := fault.Parse(spec)
		if err != nil {
			return err
		}
		s.faults = plan.Injector()
		return nil
	}
}

// WithLimits limits throughput and calls, as `runnel serve --limits` does. docs/limits.md
// describes the language. Examples: "aws", "aws,write-records=100", "orders/write-bytes=64KiB".
// Default: no limits.
func WithLimits(spec string) Option {
	return func(s *settings) error {
		s.server.Limits = spec
		return s.server.Validate()
	}
}

// WithDir stores the data durably in a folder. Default: in memory.
func WithDir(dir string) Option {
	return func(s *settings) error {
		s.server.Dir = dir
		return nil
	}
}

// WithCrashes keeps the data on a disk in memory that loses unsynced writes. After Kill and
// Restart the server has all acknowledged data. The seed decides which of the other writes
// survive.
func WithCrashes(seed uint64) Option {
	return func(s *settings) error {
		s.crashable, s.random = true, rand.New(rand.NewPCG(seed, 0))
		return nil
	}
}

// InMemory connects the clients of AWSConfig through pipes in memory. There is no port, so other
// clients cannot connect. It works with virtual time in a testing/synctest bubble. Default: a
// loopback port, open to any client.
func InMemory() Option {
	return func(s *settings) error {
		s.network.memory = true
		return nil
	}
}

// WithAddr sets the HOST:PORT to listen on. Default 127.0.0.1:0, which takes a free port.
func WithAddr(addr string) Option {
	return func(s *settings) error {
		s.network.addr = addr
		return nil
	}
}

// WithWorld sets the account (12 digits) and the region of AWSConfig and WithStream. Defaults
// "000000000000" and "us-east-1".
func WithWorld(account, region string) Option {
	return func(s *settings) error {
		s.server.Account, s.server.Region = account, region
		return nil
	}
}

// WithSyncInterval makes the server acknowledge writes before they are synced, and sync once per
// interval. Default 0: every write is synced before it is acknowledged.
func WithSyncInterval(interval time.Duration) Option {
	return func(s *settings) error {
		s.server.SyncInterval = interval
		return nil
	}
}

// WithStreamDelay sets the duration of CREATING, UPDATING and DELETING; below 0 they take no time
// at all. Default 100 ms.
func WithStreamDelay(delay time.Duration) Option {
	return func(s *settings) error {
		s.server.StreamDelay = delay
		return nil
	}
}

// WithLogger sets the server's logger. Default: NewServer logs warnings and errors to the test,
// Start logs nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		s.server.Logger = logger
		return nil
	}
}
