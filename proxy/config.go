package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// Config says where a Proxy passes calls to and how it puts. Client is needed; every other
// field's zero value is its default.
type Config struct {
	// Kinesis says where to: its endpoint, region, credentials and HTTP client are used for the
	// calls that are passed through too. Needed.
	Kinesis *kinesis.Client
	// Producer is the template of the streams' producers: their order, their buffers, how hard
	// they try. Stream and Kinesis are set by the proxy. MaxRecordBytes is by default each
	// stream's own limit, MaxBatchBytes 10 MiB; MaxBufferedBytes is at least 10 MiB, the longest
	// record, unless MaxRecordBytes is less.
	Producer producer.Config

	// PutWait is how long a request waits for room, in the producer's buffer or in MaxBytes,
	// before its records are refused as over the provisioned throughput. Default 1 s; up to
	// 1 minute.
	PutWait time.Duration
	// MaxStreams is how many streams have a producer at a time. With so many, a further one
	// takes the place of that which was idle the longest. Default 1,000; from 1 to 100,000.
	MaxStreams int
	// MaxBytes bounds the requests that are under way, in bytes of their bodies. Default 256 MiB;
	// from 15 MiB, the longest body.
	MaxBytes int64
	// ShutdownTimeout is how long Serve goes on delivering and answering once its context has
	// ended. Default 30 s.
	ShutdownTimeout time.Duration

	// TLS encrypts Serve's connections, all of them; it needs certificates, and its NextProtos
	// are set. Default nil: plain connections.
	TLS *tls.Config
	// Logger hears of what the clients cannot be told. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.PutWait = cmp.Or(c.PutWait, time.Second)
	c.MaxStreams = cmp.Or(c.MaxStreams, 1000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 30*time.Second)
	if c.Producer.MaxRecordBytes == 0 {
		c.Producer.MaxBatchBytes = cmp.Or(c.Producer.MaxBatchBytes, maxBytes)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Producer.Logger == nil {
		c.Producer.Logger = c.Logger
	}
	return c
}

// Validate returns nil, or an error that names every field that is out of its limits, those of
// Producer included. Zero fields stand for their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("proxy: "+format, args...))
		}
	}
	fault(c.Kinesis == nil, "Kinesis is missing: want a *kinesis.Client")
	fault(c.Producer.Stream != "" || c.Producer.Kinesis != nil,
		"Producer.Stream and Producer.Kinesis are set: leave them to the proxy")
	fault(c.PutWait < 0 || c.PutWait > time.Minute, "PutWait is %v: want 0 (for 1 s) to 1m",
		c.PutWait)
	fault(c.MaxStreams < 1 || c.MaxStreams > 100_000, "MaxStreams is %d: want 1 to 100000",
		c.MaxStreams)
	fault(c.MaxBytes < wire.MaxBody, "MaxBytes is %d: want at least %d, the longest body",
		c.MaxBytes, wire.MaxBody)
	fault(c.ShutdownTimeout < 0, "ShutdownTimeout is %v: want 0 (for 30 s) or more",
		c.ShutdownTimeout)
	buffer := c.Producer.MaxBufferedBytes
	fault(buffer != 0 && buffer < c.maxRecord(), "Producer.MaxBufferedBytes is %d: want at least "+
		"%d, the longest record", buffer, c.maxRecord())
	if c.Kinesis != nil {
		if err := c.producer("any").Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// maxRecord is the most bytes that a record can have, whatever its stream's limit is.
func (c Config) maxRecord() int { return cmp.Or(c.Producer.MaxRecordBytes, maxRecordBytes) }

// producer returns the configuration of a stream's producer. It is the one place where these
// are made.
func (c Config) producer(stream string) producer.Config {
	p := c.Producer
	p.Stream, p.Kinesis, p.Reader = stream, c.Kinesis, c.Kinesis
	return p
}
