package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/wire"
)

// writeTimeout limits the time in which a client reads an answer, or a part of an event stream.
const writeTimeout = time.Minute

func (p *Proxy) serveHTTP(w http.ResponseWriter, r *http.Request) {
	page, check := p.page(r), p.guard.CheckCall
	if page != nil {
		check = p.guard.CheckPage
	}
	if err := check(r); err != nil { // a foreign page must not act with the proxy's credentials
		p.meters.count("refused", "refused")
		p.allow(w)
		origin.Refuse(w, r, err)
		wire.TakeRest(w, r)
		return
	}
	if page != nil {
		origin.Share(w, r)
		page(w, r)
		return
	}
	body := new(budget.Share) // it may outlive the call: records wait for their results
	p.memory.Open(body, bodyCut{w})
	p.allow(w)
	x, err := wire.Begin(w, r, wire.Checks{Memory: body})
	if err != nil {
		body.Release()
		p.meters.count("refused", "refused")
		p.cfg.Logger.Debug("request refused", "from", r.RemoteAddr, "error", err)
		if !errors.Is(err, wire.ErrAnswered) { // to return would answer 200
			panic(http.ErrAbortHandler)
		}
		wire.TakeRest(w, r)
		return
	}
	defer x.Close()
	p.serve(w, r, x, body.Release)
}

// bodyCut cuts off the reading of a body.
type bodyCut struct{ http.ResponseWriter }

// Cut implements budget.Cutter.
func (c bodyCut) Cut() {
	// A writer without deadlines, such as a test's recorder, is not cut off.
	_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
}

// page returns the handler of a page for monitoring; nil for a call.
func (p *Proxy) page(r *http.Request) http.HandlerFunc {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	switch r.URL.Path {
	case "/health":
		return p.health
	case "/metrics":
		return func(w http.ResponseWriter, r *http.Request) {
			p.allow(w)
			w.Header().Set("Cache-Control", "no-store")
			p.meters.page.ServeHTTP(w, r)
		}
	}
	return nil
}

// serve answers a call. free releases the memory of the call's body and records. It is called once:
// by serve, or, after serve has returned, with the last record's result.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, x *wire.Exchange, free func()) {
	switch {
	case x.Call.Service != wire.Kinesis:
		free()
		p.fail(w, x, "other", &wire.Error{
			Code: awserr.CodeUnknownOperation,
			Message: "This proxy takes calls of the Kinesis API alone: call " + x.Call.Service +
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
	x.Close() // early, since the records may wait for a long time
	if failure == nil {
		failure = check(operation, request, p.cfg.maxRecord())
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
		panic(http.ErrAbortHandler) // the client would take an empty answer for success
	default:
		body, err := encode(&x.Call, results)
		if err != nil {
			p.fail(w, x, operation, errorOf(err))
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

// allow sets the deadline of the next writes to the client. net/http clears it after the answer.
func (p *Proxy) allow(w http.ResponseWriter) {
	// A writer without deadlines, such as a test's recorder, needs none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}
