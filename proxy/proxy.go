package proxy

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/runnel-stream/runnel/internal/budget"

	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// Proxy is a server of the Kinesis API. Its methods are safe for concurrent use. Close must be
// called to end its producers, unless Serve has returned.
type Proxy struct {
	cfg      Config
	guard    *origin.Guard
	upstream *upstream
	streams  *streams
	world    world
	meters   *meters
	memory   *budget.Budget // of the bodies of current requests
	probe    probe          // of upstream, for /health

	// ending is closed at the beginning of the shutdown. Event streams end, and /health says so.
	ending    chan struct{}
	endingOne sync.Once
}

// New returns a proxy in front of cfg.Kinesis's endpoint. New makes no call.
//
// The context's values go to every call of the producers; its end does not stop the proxy. The
// error comes from cfg.Validate, or from the resolver of the endpoint.
func New(ctx context.Context, cfg Config) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	guard, err := origin.New(cfg.AllowOrigins)
	if err != nil {
		return nil, err
	}
	upstream, err := newUpstream(ctx, cfg.Kinesis.Options())
	if err != nil {
		return nil, fmt.Errorf("proxy: the endpoint of the Kinesis API: %w", err)
	}
	under := context.WithoutCancel(ctx)
	p := &Proxy{
		cfg: cfg, guard: guard, upstream: upstream, world: world{client: cfg.Kinesis},
		memory: budget.New(cfg.MaxBytes, 2*wire.MaxBody), ending: make(chan struct{}),
	}
	p.memory.MaxWait = cfg.PutWait
	p.streams = newStreams(cfg.MaxStreams, func(stream string) (*producer.Producer, error) {
		return producer.New(under, cfg.producer(stream))
	})
	p.meters = newMeters(p)
	return p, nil
}

// Endpoint is the URL of upstream.
func (p *Proxy) Endpoint() string { return p.upstream.url }

// Handler answers HTTP requests, for a server other than Serve's.
func (p *Proxy) Handler() http.Handler { return http.HandlerFunc(p.serveHTTP) }

// Close refuses further puts, waits for the delivery of the records that were taken, and ends the
// producers. If ctx ends first, Close gives the remaining records up: their clients get an
// InternalFailure, and Close's error has the number of records. A second call of Close also waits
// until the producers have ended.
func (p *Proxy) Close(ctx context.Context) error {
	p.end()
	return p.streams.close(ctx)
}

func (p *Proxy) end() { p.endingOne.Do(func() { close(p.ending) }) }

func (p *Proxy) isEnding() bool {
	select {
	case <-p.ending:
		return true
	default:
		return false
	}
}
