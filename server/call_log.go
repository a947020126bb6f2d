package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
)

// callLog holds a call's fields in the log.
type callLog struct {
	wire.Facts
	received int           // bytes of the body, unpacked
	took     time.Duration // until the answer was made; 0: the call was not executed
	failure  *wire.Error
	streamed bool // the answer is an event stream, of so many events and bytes of payloads
	events   int
	sent     int
}

// logs reports whether calls are logged.
func (s *Server) logs(ctx context.Context) bool {
	return s.cfg.Logger.Enabled(ctx, slog.LevelDebug)
}

// executed notes the end of an execution. Like failed and event it does nothing for nil.
func (l *callLog) executed(took time.Duration, failure *wire.Error) {
	if l != nil {
		l.took, l.failure = took, failure
	}
}

// failed notes the error that is the answer.
func (l *callLog) failed(failure *wire.Error) {
	if l != nil {
		l.failure = failure
	}
}

// event notes an event that was sent.
func (l *callLog) event(e *wire.Event) {
	if l != nil {
		l.events++
		l.sent += len(e.Payload)
	}
}

// log logs the call, in one line, at its end. An event stream's time is that of the whole stream.
func (c *call) log(x *wire.Exchange) {
	l := c.logged
	if l == nil {
		return
	}
	c.logged = nil
	in := &x.Call
	status, sent := x.Sent()
	took := l.took
	if took == 0 || l.streamed {
		took = time.Since(c.came)
	}
	var attributes []any
	add := func(a slog.Attr) { attributes = append(attributes, a) }
	add(slog.String("service", in.Service))
	add(slog.String("operation", in.Operation))
	if l.Stream != "" {
		add(slog.String("stream", l.Stream))
	}
	if l.Table != "" {
		add(slog.String("table", l.Table))
	}
	add(slog.Int("status", status)) // 0: there was no answer
	if l.failure != nil {
		add(slog.String("error", l.failure.Error()))
	}
	if l.Counted {
		add(slog.Int("records", l.Records))
	}
	if l.Refused > 0 {
		add(slog.Int("refused", l.Refused))
	}
	if l.streamed {
		add(slog.Int("events", l.events))
	}
	add(slog.Int("bytes", l.received))
	add(slog.Int("answer_bytes", sent+l.sent))
	add(slog.Float64("seconds", took.Seconds()))
	add(slog.String("request", in.RequestID))
	c.server.cfg.Logger.Debug("call", attributes...)
}
