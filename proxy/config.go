package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// Config has the settings of a Proxy. Kinesis is required; the zero value of every other field is
// its default.
type Config struct {
	// Kinesis is the client of the producers. The proxy also uses its endpoint, region, credentials
	// and HTTP client for forwarded calls. Required.
	Kinesis *kinesis.Client
	// Producer is the template for the producer of each stream: its order, buffers and retries. The
	// proxy sets Stream and Kinesis. MaxRecordBytes defaults to each stream's own limit, and
	// MaxBatchBytes to 10 MiB then. MaxBufferedBytes must be at least MaxRecordBytes, or 10 MiB,
	// the longest record, if MaxRecordBytes is 0.
	Producer producer.Config

	// PutWait limits a request's waits: for more room for its body in MaxBytes, after which it is
	// refused with 503, and for its records' room in the producer's buffer, after which the
	// remaining records are refused with ProvisionedThroughputExceededException. Default 1 s; at
	// most 1 minute.
	PutWait time.Duration
	// MaxStreams is the most producers at a time, one for each stream. Beyond that, a new stream
	// replaces the stream that was idle for the longest time. Default 1,000; from 1 to 100,000.
	MaxStreams int
	// MaxBytes bounds the bodies of all current requests, in bytes, as they come; the first 16 KiB
	// of each are not counted. Default 256 MiB; at least 15 MiB, the longest body.
	MaxBytes int64
	// ShutdownTimeout limits the time in which Serve delivers and answers after its context has
	// ended. Default 30 s.
	ShutdownTimeout time.Duration

	// AllowOrigins are the web pages of other machines that may call, each by its scheme, host and
	// port, as "https://app.example.com". Pages of this machine always may. Default none.
	AllowOrigins []string

	// TLS encrypts all of Serve's connections. It needs certificates; Serve sets NextProtos.
	// Default nil: plain connections.
	TLS *tls.Config
	// Logger gets the faults that no answer reports. Default slog.Default().
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

// Validate returns nil, or an error that names every field outside its limits, also those of
// Producer. A zero field has its default.
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
	_, err := origin.New(c.AllowOrigins)
	fault(err != nil, "AllowOrigins: %v", err)
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

// maxRecord is the most bytes that a record of any stream can have.
func (c Config) maxRecord() int { return cmp.Or(c.Producer.MaxRecordBytes, maxRecordBytes) }

// producer returns the configuration of a stream's producer.
func (c Config) producer(stream string) producer.Config {
	p := c.Producer
	p.Stream, p.Kinesis, p.Reader = stream, c.Kinesis, c.Kinesis
	return p
}
