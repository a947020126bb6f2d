package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	// Dir is the data directory; it is made if it is not there. Default "runnel-data".
	Dir string
	// Memory keeps everything in memory: gone with the server, unless FS is one in memory that
	// outlives it. Default false.
	Memory bool
	// FS is the file system that Dir is on. Default the operating system's, or an empty one in
	// memory if Memory is set.
	FS vfs.FS
	// SyncInterval, if above 0, acknowledges before the disk has synced, and syncs that often:
	// a power cut may lose as much. Default 0: every acknowledgement is synced first.
	SyncInterval time.Duration
	// LogFileSize is the length of a log file, in bytes: what recovery looks through after a
	// crash, and how much is logged between two checkpoints. Default 64 MiB, or 16 MiB if
	// Memory is set, where up to four of them are memory; at least 8 KiB.
	LogFileSize int64

	// Streams are made at the start if they are not there, in the world Account and Region.
	Streams []StreamSpec
	Account string // 12 digits; default "000000000000"
	Region  string // default "us-east-1"
	// StreamDelay is how long CREATING, UPDATING and DELETING last; below 0: no time at all.
	// Default 100 ms.
	StreamDelay time.Duration

	// TLS encrypts Serve's connections; it needs certificates, and its NextProtos are set. What
	// comes to a loopback address may then still be plain. Default nil: everything is plain.
	TLS *tls.Config

	// Credentials are the keys that calls must be signed with; any of them may do anything.
	// Default nil: whoever reaches the server may do anything.
	Credentials *wire.Credentials

	// Limits are the limits on throughput and calls. Default nil: none.
	Limits *limit.Plan

	// Faults injects faults. Default none.
	Faults *fault.Injector
	// MaxBodies bounds the request bodies that are in memory at a time, in bytes; further
	// calls wait. Default 256 MiB; at least 15 MiB.
	MaxBodies int64
	// ShutdownTimeout is how long Serve lets calls finish once its context has ended.
	// Default 10 s.
	ShutdownTimeout time.Duration

	Logger *slog.Logger     // default slog.Default()
	Now    func() time.Time // the system's clock; default seam.Wall
}

// StreamSpec is a stream to be there.
type StreamSpec struct {
	Name   string
	Shards int // if it has to be made
}

const (
	defaultDir             = "runnel-data"
	defaultMaxBodies       = 256 << 20
	memoryLogFileSize      = 16 << 20 // more than the largest call
	defaultShutdownTimeout = 10 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Dir == "" {
		c.Dir = defaultDir
	}
	if c.LogFileSize == 0 && c.Memory {
		c.LogFileSize = memoryLogFileSize
	}
	if c.FS == nil && c.Memory {
		c.FS = vfs.NewMem()
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Account == "" {
		c.Account = wire.DefaultAccount
	}
	if c.Region == "" {
		c.Region = wire.DefaultRegion
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = defaultMaxBodies
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = defaultShutdownTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = seam.Wall
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.Account != "" && !wire.IsAccount(c.Account) {
		faults = append(faults, fmt.Errorf("account %q: want 12 digits", c.Account))
	}
	if c.Region != "" && !wire.IsRegion(c.Region) {
		faults = append(faults, fmt.Errorf("region %q: want a name as eu-west-1", c.Region))
	}
	if c.MaxBodies != 0 && c.MaxBodies < wire.MaxBody {
		faults = append(faults, fmt.Errorf("MaxBodies %d: want at least %d, the longest body",
			c.MaxBodies, wire.MaxBody))
	}
	if c.SyncInterval < 0 {
		faults = append(faults, fmt.Errorf("SyncInterval %v: want 0 or more", c.SyncInterval))
	}
	if c.ShutdownTimeout < 0 {
		faults = append(faults, fmt.Errorf("ShutdownTimeout %v: want 0 or more",
			c.ShutdownTimeout))
	}
	for _, stream := range c.Streams {
		if stream.Name == "" || stream.Shards < 1 {
			faults = append(faults, fmt.Errorf("stream %q with %d shards: want a name and at "+
				"least one shard", stream.Name, stream.Shards))
		}
	}
	return errors.Join(faults...)
}
