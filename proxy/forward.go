package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// eventStream is the content type of an event stream.
const eventStream = "application/vnd.amazon.eventstream"

// forward sends a call to upstream and the answer to the client, both unchanged except for the
// signature.
func (p *Proxy) forward(
	w http.ResponseWriter, r *http.Request, x *wire.Exchange, free func(),
) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// The transport may read the body after it has returned the answer, so it gets a copy.
	body := bytes.Clone(x.Call.Body)
	answer, err := p.upstream.send(ctx, r.Header, body)
	free()
	if err != nil {
		p.failForward(w, r, x, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	p.meters.count("other", fmt.Sprintf("%dxx", answer.StatusCode/100))
	clear(w.Header()) // the proxy's own request id, since the answer has upstream's
	copyHeader(w.Header(), answer.Header)
	p.allow(w)
	w.WriteHeader(answer.StatusCode)
	if strings.HasPrefix(answer.Header.Get("Content-Type"), eventStream) {
		err = p.copyEvents(w, answer.Body, cancel)
	} else {
		err = p.copyBody(w, answer.Body)
	}
	if err != nil {
		p.cfg.Logger.Debug("an answer was broken off", "operation", x.Call.Operation,
			"error", err)
		panic(http.ErrAbortHandler) // so that the client notices the incomplete answer
	}
}

// failForward answers a call that upstream did not answer. It is unknown whether upstream executed
// the call.
func (p *Proxy) failForward(
	w http.ResponseWriter, r *http.Request, x *wire.Exchange, err error,
) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		p.meters.count("other", "gone")
		panic(http.ErrAbortHandler) // the client would take an empty answer for success
	}
	p.fail(w, x, "other", wire.Unavailable(fmt.Sprintf(
		"The proxy has no answer to %s from %s: %v", x.Call.Operation, p.upstream.url, err)))
}

// copyBody copies an answer to the client. The deadline begins anew with every part.
func (p *Proxy) copyBody(w http.ResponseWriter, body io.Reader) error {
	_, err := io.Copy(deadlined{p, w}, body)
	return err
}

// deadlined is a writer to the client with a new deadline for every write.
type deadlined struct {
	proxy *Proxy
	to    http.ResponseWriter
}

func (d deadlined) Write(data []byte) (int, error) {
	d.proxy.allow(d.to)
	return d.to.Write(data)
}
