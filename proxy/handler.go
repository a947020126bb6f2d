package proxy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
)

// writeTimeout is how long a client may take to read an answer, or a part of an event stream.
const writeTimeout = time.Minute

func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		switch r.URL.Path {
		case "/health":
			p.health(w)
			return
		case "/metrics":
			p.allow(w)
			w.Header().Set("Cache-Control", "no-store")
			p.meters.page.ServeHTTP(w, r)
			return
		}
	}
	// A browser names the page that a call is from. Only a page of this machine may act with the
	// proxy's credentials, whatever name it has given to this address.
	if origin := r.Header.Get("Origin"); origin != "" && !awsclient.IsLoopback(origin) {
		http.Error(w, "pages of "+origin+" may not call this proxy: only pages of its own machine",
			http.StatusForbidden)
		return
	}
	weight := weigh(r)
	if !p.admit(w, r, weight) {
		return
	}
	free := func() { p.memory.Release(weight) }
	x, err := wire.Begin(w, r, nil)
	if err != nil {
		free()
		p.meters.count("refused", "refused")
		p.cfg.Logger.Debug("request refused", "from", r.RemoteAddr, "error", err)
		return
	}
	defer x.Close()
	p.serve(w, r, x, free)
}

// serve answers a call. It, or what it starts, calls free once when the call's body and its
// records are no longer held.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, x *wire.Exchange, free func()) {
	switch {
	case x.Call.Service != wire.Kinesis:
		free()
		p.fail(w, x, "other", &wire.Error{
			Code: awserr.CodeUnknownOperation,
			Message: "This proxy passes calls of the Kinesis API alone: call " + x.Call.Service +
				" at its own endpoint.",
		})
	case x.Call.Operation == putRecord || x.Call.Operation == putRecords:
		p.servePut(r.Context(), w, x, free)
	default:
		p.forward(w, r, x, free)
	}
}

func (p *Proxy) servePut(
	ctx context.Context, w http.ResponseWriter, x *wire.Exchange, free func(),
) {
	operation := x.Call.Operation
	request, failure := decode(&x.Call)
	x.Close() // the records may stay for long
	if failure == nil {
		failure = request.check(operation, p.cfg.maxRecord())
	}
	if failure != nil {
		free()
		p.fail(w, x, operation, failure)
		return
	}
	results, failure := p.put(ctx, request, free)
	switch {
	case failure != nil:
		p.fail(w, x, operation, failure)
	case results == nil:
		p.meters.count(operation, "gone")
		panic(http.ErrAbortHandler) // an empty answer would be an acknowledgement
	default:
		body, err := encode(&x.Call, results)
		if err != nil {
			p.fail(w, x, operation, answerTo(err))
			return
		}
		p.meters.count(operation, "ok")
		p.allow(w)
		x.Answer(body)
	}
}

func (p *Proxy) fail(w http.ResponseWriter, x *wire.Exchange, operation string,
	failure *wire.Error,
) {
	p.meters.count(operation, failure.Code)
	p.allow(w)
	x.Fail(failure)
}

// weigh returns the memory that a request's body may come to, in bytes.
func weigh(r *http.Request) int64 {
	if r.ContentLength < 0 || r.Header.Get("Content-Encoding") != "" {
		return wire.MaxBody // chunked or packed: it says nothing of its length
	}
	return min(r.ContentLength, wire.MaxBody)
}

// admit waits for memory, for at most Config.PutWait. Otherwise it answers 503, which every SDK
// takes for a reason to try again later.
func (p *Proxy) admit(w http.ResponseWriter, r *http.Request, weight int64) bool {
	if p.memory.TryAcquire(weight) {
		return true
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.cfg.PutWait)
	defer cancel()
	if p.memory.Acquire(ctx, weight) == nil {
		return true
	}
	p.meters.count("refused", awserr.CodeUnavailable)
	p.allow(w)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if r.ProtoMajor < 2 { // the body is not read
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"__type":"`+awserr.CodeUnavailable+
		`","message":"the proxy holds as much as it may; nothing was taken, send it again later"}`)
	return false
}

// allow gives the client its time to read what is written next. The deadline ends with the
// answer: net/http clears it.
func (p *Proxy) allow(w http.ResponseWriter) {
	// A writer without deadlines, as a test's recorder, does not need them.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// health answers 200 "ok" if calls are taken, and 503 with the reason otherwise. It says nothing
// of the endpoint behind: records are taken during its outages.
func (p *Proxy) health(w http.ResponseWriter) {
	p.allow(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if p.isEnding() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "shutting down\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
