package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

type serviceFunc func(context.Context, *wire.Call) ([]byte, error)

func (f serviceFunc) Serve(ctx context.Context, c *wire.Call) (wire.Answer, error) {
	body, err := f(ctx, c)
	return wire.Answer{Body: body}, err
}

// TestFailuresInside: the server's own failures are logged and left out of the answer, and a panic
// ends one call only.
func TestFailuresInside(t *testing.T) {
	for _, c := range []struct {
		name   string
		serve  serviceFunc
		status int
		body   string
		logged string
	}{
		{"a failure", func(context.Context, *wire.Call) ([]byte, error) {
			return nil, errors.New("secret")
		}, 500, `{"__type":"InternalFailure"}`, "secret"},
		{"a panic", func(context.Context, *wire.Call) ([]byte, error) {
			panic("secret")
		}, 500, `{"__type":"InternalFailure"}`, "secret"},
		{"the caller's fault", func(context.Context, *wire.Call) ([]byte, error) {
			return nil, &wire.Error{Code: "XException", Message: "told", Status: 418}
		}, 418, `{"__type":"XException","message":"told"}`, ""},
		{"no body", func(context.Context, *wire.Call) ([]byte, error) {
			return nil, nil
		}, 200, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			s, err := New(Config{Memory: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			s.mu.engine = &engine{services: map[string]wire.Service{wire.Kinesis: c.serve}}
			s.mu.state = ready
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
				strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			r.Header.Set("X-Amz-Target", "Kinesis_20131202.ListStreams")
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("%d %s; want %d %s", w.Code, w.Body, c.status, c.body)
			}
			if logged := log.String(); !strings.Contains(logged, c.logged) ||
				(c.logged == "" && logged != "") {
				t.Errorf("logged %q, want %q in it", logged, c.logged)
			}
			if s.mu.calls != 0 || s.bodies.Used() != 0 {
				t.Error("the call holds something after its end")
			}
		})
	}
}

// TestFactsAreForALog: a service collects nothing for a log without calls.
func TestFactsAreForALog(t *testing.T) {
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		var log bytes.Buffer
		s, err := New(Config{Memory: true, Logger: slog.New(slog.NewTextHandler(&log,
			&slog.HandlerOptions{Level: level}))})
		if err != nil {
			t.Fatal(err)
		}
		collects := false
		s.mu.engine = &engine{services: map[string]wire.Service{
			wire.Kinesis: serviceFunc(func(_ context.Context, c *wire.Call) ([]byte, error) {
				collects = c.Facts != nil
				return nil, nil
			}),
		}}
		s.mu.state = ready
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set("X-Amz-Target", "Kinesis_20131202.ListStreams")
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		if collects != want || strings.Contains(log.String(), "msg=call ") != want {
			t.Errorf("at %v it collects: %v; the log: %s", level, collects, log.String())
		}
	}
}
