package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/transport"
)

var (
	errDrained = errors.New("the server is shutting down")
	errCut     = errors.New("a fault on request")
)

// drainGrace is the time that a subscriber has to read the current event when the server shuts
// down.
const drainGrace = time.Second

// eventStream is a running event stream. A client has writeTimeout to read each event. A client
// that reads more slowly than events come delays only itself, with one event in memory. A client
// that has stopped reading is cut off. Between events the stream waits in Next without a deadline.
type eventStream struct {
	server *Server
	events wire.Events
	cutAt  time.Time // a fault on request; zero: never

	control *http.ResponseController
	mu      sync.Mutex
	ending  bool // the write deadline is final
}

// stream answers the call with events until they end, and closes them. It first gives back the
// memory of the request: a stream lives for minutes, its body's memory does not. The stream ends
// properly at its own end and when the server shuts down, and otherwise breaks off.
func (c *call) stream(ctx context.Context, events wire.Events, cutAfter time.Duration) {
	c.release()
	c.place.leave()
	if c.logged != nil {
		c.logged.streamed = true
	}
	c.server.setDate(c.w)
	e := &eventStream{
		server: c.server, events: events, control: http.NewResponseController(c.w),
	}
	defer events.Close()
	if cutAfter > 0 {
		e.cutAt = time.Now().Add(cutAfter)
	}
	ctx, stop := e.watch(ctx)
	err := c.send(ctx, e)
	stop()
	if err == nil {
		return
	}
	c.server.cfg.Logger.Debug("an event stream broke off", "request", c.exchange.Call.RequestID,
		"error", err)
	panic(http.ErrAbortHandler)
}

// watch returns a context that ends, with its cause, when the server shuts down or the stream is to
// be cut. The caller calls stop when the stream has ended; stop waits.
func (e *eventStream) watch(ctx context.Context) (watched context.Context, stop func()) {
	drained := transport.Draining(ctx)
	watched, cancel := context.WithCancelCause(ctx)
	var cut <-chan time.Time // nil: never
	if !e.cutAt.IsZero() {
		cut = time.After(time.Until(e.cutAt))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-watched.Done():
			return
		case <-cut:
			cancel(errCut)
			return
		case <-drained:
		case <-e.server.hurry:
		}
		cancel(errDrained)
		e.finalDeadline()
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}

// finalDeadline bounds the current write.
func (e *eventStream) finalDeadline() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending = true
	_ = e.control.SetWriteDeadline(time.Now().Add(drainGrace))
}

// write calls send with the client's time to read as its deadline. It removes the deadline after
// the write: on HTTP/2 a deadline that passes resets the stream, written to or not.
func (e *eventStream) write(send func() error) error {
	deadline := time.Now().Add(e.server.writeTimeout)
	if !e.cutAt.IsZero() && e.cutAt.Before(deadline) {
		deadline = e.cutAt
	}
	e.setDeadline(deadline)
	err := send()
	e.setDeadline(time.Time{})
	return err
}

// setDeadline sets the write deadline, unless it is final. A writer without deadlines, as a
// test's recorder, does not need them.
func (e *eventStream) setDeadline(deadline time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending {
		_ = e.control.SetWriteDeadline(deadline)
	}
}

// send sends events until they end. nil means that the stream ends here properly.
func (c *call) send(ctx context.Context, e *eventStream) error {
	var frames *wire.Frames
	sent := c.server.meters.of(&c.exchange.Call).answered
	err := e.write(func() (err error) {
		frames, err = c.exchange.Stream()
		return err
	})
	if err != nil {
		return err
	}
	for {
		event, err := c.next(ctx, e.events)
		switch {
		case errors.Is(context.Cause(ctx), errDrained), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		err = e.write(func() error { return frames.Write(event) })
		c.sending.Release()
		if err != nil {
			return err
		}
		sent.Add(float64(len(event.Payload)))
		c.logged.event(&event)
		if event.Exception {
			return nil // it is the stream's last
		}
	}
}

// errPanicked replaces a panic that has been logged.
var errPanicked = errors.New("the service panicked")

// next waits for an event. An internal error is logged here, and the stream breaks off.
func (c *call) next(ctx context.Context, events wire.Events) (e wire.Event, err error) {
	in := &c.exchange.Call
	defer func() {
		if thrown := recover(); thrown != nil {
			c.server.cfg.Logger.Error("an event stream failed",
				"call", in.Service+"."+in.Operation, "request", in.RequestID,
				"panic", thrown, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	e, err = events.Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		c.report(ctx, err)
	}
	return e, err
}
