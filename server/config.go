package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	// Dir is the data directory; a missing one is created. Default "runnel-data".
	Dir string
	// Memory keeps all data in memory; they are gone when the server ends. Default false.
	Memory bool
	// MemoryLimit bounds the memory that the data take, in bytes, if Memory is set: records, items
	// and the server's files for them. At the limit calls that store more are throttled, until data
	// are deleted or expire. Buffers of calls come on top. Default 0: no limit; at least 16 MiB.
	MemoryLimit int64
	// SyncInterval, if above 0, is the time between two syncs of the disk. Calls are then
	// acknowledged before the sync, so a power cut may lose the data of that time. Default 0: every
	// acknowledgement is synced first.
	SyncInterval time.Duration
	// LogFileSize is the length of a log file, in bytes. Recovery after a crash reads about that
	// much, and so much is logged between two checkpoints. Default 64 MiB, or 16 MiB if Memory is
	// set, where up to four of them are memory; at least 8 KiB.
	LogFileSize int64

	// SkipDamaged lets reads go on behind records that are damaged on the disk. These are missing
	// then, as if they had expired, and counted in the metrics. Default false: reads of them fail,
	// with an error that says so.
	SkipDamaged bool

	// Streams are created at the start if they are missing, in the world Account and Region.
	Streams []StreamSpec
	Account string // 12 digits; default "000000000000"
	Region  string // default "us-east-1"
	// StreamDelay is how long CREATING, UPDATING and DELETING last; below 0: no time at all.
	// Default 100 ms.
	StreamDelay time.Duration

	// AcceptClock says that the system's clock is right at the start. The server's clock then
	// follows it forward at once, however far, and data expire though the two differ: see
	// docs/serve.md. It is for one start after the clock was checked. Default false.
	AcceptClock bool

	// TLS encrypts Serve's connections; it needs certificates, and its NextProtos are set.
	// Connections to a loopback address may then still be plain. Default nil: everything is plain.
	TLS *tls.Config

	// Credentials are the keys that calls must be signed with; any of them may do anything.
	// Default "": any client that reaches the server may do anything.
	Credentials Credentials

	// AllowOrigins are the web pages of other machines that may call without a key and read the
	// metrics, each by its scheme, host and port, as "https://app.example.com". Pages of this
	// machine may; with Credentials every page may call that has a key. Default none.
	AllowOrigins []string

	// Limits are the limits on throughput and calls, in the language of docs/limits.md, as
	// "aws,orders/write-bytes=64KiB". Default "": none.
	Limits string

	// Faults are injected, in the language of docs/chaos.md, as "PutRecords:lose-answer@3".
	// Default "": none.
	Faults string
	// MaxBodies bounds the request bodies that are in memory at a time, in bytes; further
	// calls wait. Default 128 MiB; at least 15 MiB.
	MaxBodies int64
	// ItemsMemory bounds the memory that the items of all tables take, in bytes. A write that would
	// grow beyond it is throttled: see docs/serve.md. Default 0: no bound; at
	// least 1 MiB.
	ItemsMemory int64
	// ShutdownTimeout is the time that Serve lets calls finish once its context has ended. Default
	// 10 s.
	ShutdownTimeout time.Duration

	Logger *slog.Logger // default slog.Default()
}

// Credentials is the text of a file of access keys, in the format of AWS's shared credentials file:
// the server accepts the key of every profile. It prints as its length, so that no log shows a
// secret.
type Credentials string

// Format writes the number of bytes, whatever the verb is.
func (c Credentials) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "credentials of %d bytes", len(c))
}

// LogValue returns the text of Format.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// StreamSpec describes a stream to create at the start.
type StreamSpec struct {
	Name   string // the stream's name, as CreateStream wants it; no other StreamSpec has it
	Shards int    // if it has to be made; at most 10,000
}

const (
	defaultDir             = "runnel-data"
	maxStreamName          = 128 // characters
	defaultMaxBodies       = 128 << 20
	maxAnswers             = 128 << 20 // bytes of answers that are made or sent
	memoryLogFileSize      = 16 << 20  // more than the largest call
	defaultShutdownTimeout = 10 * time.Second
	minMemoryLimit         = 16 << 20
	minItemsMemory         = 1 << 20 // holds the longest item, and once more in an index
)

// share returns the size of a part of the server that takes up to most bytes: less with a small
// MemoryLimit, of which several such parts must not take the whole.
func (s *settings) share(most int64) int64 {
	if s.MemoryLimit == 0 {
		return most
	}
	return min(most, s.MemoryLimit/16)
}

// settings are a Config with its defaults, its parsed texts, and the parts that tests replace.
type settings struct {
	Config
	seam.Server
	credentials *wire.Credentials // nil: none are asked for
	limits      *limit.Plan       // nil: none
	guard       *origin.Guard
	files       interface{ Memory() int64 } // the file system, if it is in memory
}

func newSettings(cfg Config, options []seam.Option) (settings, error) {
	s := settings{Config: cfg}
	for _, option := range options {
		option(&s.Server)
	}
	if err := s.read(); err != nil {
		return s, err
	}
	if s.Dir == "" {
		s.Dir = defaultDir
	}
	if s.LogFileSize == 0 && s.Memory {
		s.LogFileSize = s.share(memoryLogFileSize)
	}
	if s.FS == nil && s.Memory {
		s.FS = vfs.NewMem()
	}
	if s.FS == nil {
		s.FS = vfs.OS{}
	}
	s.files, _ = s.FS.(interface{ Memory() int64 })
	if s.Account == "" {
		s.Account = wire.DefaultAccount
	}
	if s.Region == "" {
		s.Region = wire.DefaultRegion
	}
	if s.MaxBodies == 0 {
		s.MaxBodies = defaultMaxBodies
	}
	if s.ShutdownTimeout == 0 {
		s.ShutdownTimeout = defaultShutdownTimeout
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.Wall == nil {
		s.Wall = seam.Wall
	}
	return s, nil
}

// read checks the configuration and parses its texts.
func (s *settings) read() error {
	faults := s.Config.check()
	refuse := func(field string, value any, err error) {
		if err != nil {
			faults = append(faults, fieldError(field, value, err))
		}
	}
	var err error
	if s.Config.Credentials != "" {
		s.credentials, err = wire.ParseCredentials([]byte(s.Config.Credentials))
		refuse("Credentials", fmt.Sprintf("%d bytes long", len(s.Config.Credentials)), err)
	}
	s.limits, err = limit.Parse(s.Config.Limits)
	refuse("Limits", strconv.Quote(s.Config.Limits), err)
	s.guard, err = origin.New(s.Config.AllowOrigins)
	refuse("AllowOrigins", s.Config.AllowOrigins, err)
	plan, err := fault.Parse(s.Config.Faults)
	refuse("Faults", strconv.Quote(s.Config.Faults), err)
	if s.Server.Faults == nil && err == nil {
		s.Server.Faults = plan.Injector()
	}
	return errors.Join(faults...)
}

// FieldError is the fault of one field of a Config; Validate joins them.
type FieldError struct {
	Field string // its name, as "Limits"
	Value string // its value as text, without secrets
	Err   error  // what the field has to be instead
}

// Error returns a sentence: the field, its value, and the fix.
func (e *FieldError) Error() string {
	return fmt.Sprintf("server: %s is %s: %v", e.Field, e.Value, e.Err)
}

func fieldError(field string, value any, err error) *FieldError {
	return &FieldError{Field: field, Value: fmt.Sprint(value), Err: err}
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Validate reports every fault of the configuration, each as a *FieldError.
func (c Config) Validate() error {
	s := settings{Config: c}
	return s.read()
}

// check returns the faults of the fields that are not parsed.
func (c Config) check() (faults []error) {
	fault := func(bad bool, field string, value any, want string) {
		if bad {
			faults = append(faults, fieldError(field, value, errors.New(want)))
		}
	}
	fault(c.Account != "" && !wire.IsAccount(c.Account), "Account", strconv.Quote(c.Account),
		"want 12 digits")
	fault(c.Region != "" && !wire.IsRegion(c.Region), "Region", strconv.Quote(c.Region),
		"want a name as eu-west-1")
	fault(c.MaxBodies != 0 && c.MaxBodies < wire.MaxBody, "MaxBodies", c.MaxBodies,
		fmt.Sprintf("want at least %d, the longest body", wire.MaxBody))
	fault(c.SyncInterval < 0, "SyncInterval", c.SyncInterval, "want 0 or more")
	fault(c.MemoryLimit != 0 && c.MemoryLimit < minMemoryLimit, "MemoryLimit", c.MemoryLimit,
		fmt.Sprintf("want at least %d bytes, 16MiB", minMemoryLimit))
	fault(c.MemoryLimit != 0 && !c.Memory, "MemoryLimit", c.MemoryLimit,
		"want it with Memory alone: a disk has a limit of its own")
	fault(c.ItemsMemory != 0 && c.ItemsMemory < minItemsMemory, "ItemsMemory", c.ItemsMemory,
		fmt.Sprintf("want at least %d bytes, 1MiB: an item may have 400 KiB", minItemsMemory))
	fault(c.ShutdownTimeout < 0, "ShutdownTimeout", c.ShutdownTimeout, "want 0 or more")
	return append(faults, c.checkStreams()...)
}

// checkStreams checks names and shards before anything is opened. CreateStream has the same rules.
func (c Config) checkStreams() (faults []error) {
	given := map[string]bool{}
	room := c.MemoryLimit - c.MemoryLimit/4 // which the log may take
	for _, stream := range c.Streams {
		var want string
		room -= kinesis.ShardMemory * int64(stream.Shards)
		switch {
		case len(stream.Name) > maxStreamName || !catalogue.IsName(stream.Name):
			want = fmt.Sprintf("want a name of 1 to %d characters: letters (a-z, A-Z), digits, "+
				"'_', '.' and '-'", maxStreamName)
		case stream.Shards < 1 || stream.Shards > catalogue.MaxShards:
			want = fmt.Sprintf("want 1 to %d shards", catalogue.MaxShards)
		case given[stream.Name]:
			want = "the name is given twice: give each stream once"
		case c.MemoryLimit != 0 && room < 0:
			want = "want fewer shards, or a larger MemoryLimit (--memory): a shard takes 4 KiB, " +
				"and the log up to a quarter"
		default:
			given[stream.Name] = true
			continue
		}
		faults = append(faults, fieldError("Streams",
			fmt.Sprintf("%q with %d shards", stream.Name, stream.Shards), errors.New(want)))
	}
	return faults
}
