package proxy

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/runnel-stream/runnel/producer"
)

// Proxy answers the Kinesis API. Its methods are safe for concurrent use. Close must be called
// to end its producers; Serve does not.
type Proxy struct {
	cfg     Config
	behind  *upstream
	streams *streams
	world   world
	meters  *meters
	memory  *semaphore.Weighted // bytes of the bodies of requests under way

	// ending is closed when no more calls are wanted: event streams end, /health says so.
	ending    chan struct{}
	endingOne sync.Once
}

// New returns a proxy that passes to cfg.Kinesis's endpoint. It calls nothing by itself.
//
// The context's values go to every call of the producers; its end does not stop the proxy. The
// error is that of cfg.Validate, or of an endpoint that cannot be found out.
func New(ctx context.Context, cfg Config) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	behind, err := newUpstream(ctx, cfg.Kinesis.Options())
	if err != nil {
		return nil, fmt.Errorf("proxy: the endpoint of the Kinesis API: %w", err)
	}
	under := context.WithoutCancel(ctx)
	p := &Proxy{
		cfg: cfg, behind: behind, world: world{client: cfg.Kinesis},
		memory: semaphore.NewWeighted(cfg.MaxBytes), ending: make(chan struct{}),
	}
	p.streams = newStreams(cfg.MaxStreams, func(stream string) (*producer.Producer, error) {
		return producer.New(under, cfg.producer(stream))
	})
	p.meters = newMeters(p)
	return p, nil
}

// Endpoint is the URL that calls are passed to.
func (p *Proxy) Endpoint() string { return p.behind.url }

// Handler answers HTTP requests: for servers other than Serve's own.
func (p *Proxy) Handler() http.Handler { return http.HandlerFunc(p.serveHTTP) }

// Close refuses further puts, waits until what was taken is delivered, and ends the producers.
// If ctx ends first the rest is given up, those who wait for it are told so, and the error says
// how many records these were. Close may be called again, and waits for the end then too.
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
