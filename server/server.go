package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Server serves one data directory. Its methods are safe for concurrent use.
type Server struct {
	cfg     settings
	meters  *meters
	bodies  *budget.Budget // the memory of request bodies
	answers *budget.Budget // the memory of answers that are made or sent
	relief  relief
	crowd   crowd
	hurry   chan struct{} // closed by Close: deliberate delays end

	keys   atomic.Pointer[wire.Credentials] // nil: calls need no signature
	pauses *pause.Watch
	clock  atomic.Pointer[serverclock.Clock] // nil before Start
	dates  atomic.Pointer[dateLine]

	writeTimeout time.Duration // tests set it

	poisonOnce sync.Once // a poisoned log is logged once, not for every call

	mu struct {
		sync.Mutex
		engine *engine // nil before Start has ended, and from Close on
		state  state
		calls  int           // under way
		idle   chan struct{} // made by Close, closed when calls is 0
	}
	ended    chan struct{} // closed when Close has ended
	endedErr error         // valid then
}

type state uint8

const (
	starting state = iota
	ready
	closed
)

// ErrClosed is returned by Start and Serve after Close.
var ErrClosed = errors.New("the server is closed")

// errStarted is returned by a second Start.
var errStarted = errors.New("the server has been started before")

// New makes a server that answers every call as unavailable until Start has returned. It opens
// nothing. The options are for tests of this module.
func New(config Config, options ...seam.Option) (*Server, error) {
	cfg, err := newSettings(config, options)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, bodies: budget.New(cfg.MaxBodies, 2*wire.MaxBody),
		answers: budget.New(maxAnswers, 0),
		hurry:   make(chan struct{}), ended: make(chan struct{}),
		writeTimeout: defaultWriteTimeout, pauses: pause.New(),
	}
	if cfg.credentials != nil {
		s.keys.Store(cfg.credentials.At(s.now))
	}
	s.meters = newMeters(s)
	return s, nil
}

// Open is New and Start.
func Open(ctx context.Context, cfg Config, options ...seam.Option) (*Server, error) {
	s, err := New(cfg, options...)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Start opens the data directory, recovers all acknowledged data, and makes the configured streams;
// then the server is ready. ctx bounds the start alone.
func (s *Server) Start(ctx context.Context) error {
	cfg := s.cfg
	cfg.FS = timedFS{cfg.FS, cfg.Dir, s.meters.syncs}
	engine, err := openEngine(ctx, cfg, s.pauses)
	if err != nil {
		return err
	}
	s.pauses.Start(s.paused) // unless Serve has
	s.clock.CompareAndSwap(nil, engine.clock)
	s.mu.Lock()
	was := s.mu.state
	if was == starting {
		s.mu.engine, s.mu.state = engine, ready
	}
	s.mu.Unlock()
	switch was {
	case starting:
		return nil
	case ready:
		return errors.Join(errStarted, engine.close(ctx))
	default:
		return errors.Join(ErrClosed, engine.close(ctx))
	}
}

// Handler returns the handler of HTTP requests, for servers other than Serve's own.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

// paused logs a pause of the process.
func (s *Server) paused(length time.Duration) {
	s.cfg.Logger.Warn("the server was paused; it closes the connections that it had, unserved, "+
		"since the requests in them may be too old", "length", length.Round(time.Millisecond))
}

// enter begins a call. The caller ends it with leave if the engine is not nil.
func (s *Server) enter() (*engine, state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state == ready {
		s.mu.calls++
	}
	return s.mu.engine, s.mu.state
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.calls--; s.mu.calls == 0 && s.mu.idle != nil {
		close(s.mu.idle)
	}
}

// SetCredentials replaces the keys of Config.Credentials for all later calls. Calls under way go on
// with the old ones. It returns an error, and changes nothing, if the text holds no key or is no
// file of keys, or if the server was made without keys: then it may be open to everyone.
func (s *Server) SetCredentials(c Credentials) error {
	if s.keys.Load() == nil {
		return errors.New("the server was started without keys, and takes none later")
	}
	keys, err := wire.ParseCredentials([]byte(c))
	if err != nil {
		return err
	}
	s.keys.Store(keys.At(s.now))
	return nil
}

// Close refuses further calls and closes the data directory. Until ctx ends, it first waits for
// running calls, including those that a fault delays. A further Close waits for the first one,
// whatever its own ctx, and returns the same.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	was, engine, idle := s.mu.state, s.mu.engine, make(chan struct{})
	if was != closed {
		s.mu.engine, s.mu.state, s.mu.idle = nil, closed, idle
		if s.mu.calls == 0 {
			close(idle)
		}
	}
	s.mu.Unlock()
	if was == closed {
		<-s.ended
		return s.endedErr
	}
	defer close(s.ended)
	defer s.pauses.Stop()
	defer s.relief.stop()
	close(s.hurry)
	if engine == nil {
		return nil
	}
	defer wal.Rush(engine.log)()
	select {
	case <-idle:
	case <-ctx.Done(): // the log refuses them once it is closed
	}
	s.endedErr = engine.close(ctx)
	return s.endedErr
}
