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

// eventStream is the content type of an answer that goes on.
const eventStream = "application/vnd.amazon.eventstream"

// forward passes a call to the endpoint behind and its answer back, as they are but for the
// signature.
func (p *Proxy) forward(
	w http.ResponseWriter, r *http.Request, x *wire.Exchange, free func(),
) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// The transport may look at the body after it has answered: it gets one of its own.
	body := bytes.Clone(x.Call.Body)
	answer, err := p.behind.send(ctx, r.Header, body)
	free()
	if err != nil {
		p.unreachable(w, r, x, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	p.meters.count("other", fmt.Sprintf("%dxx", answer.StatusCode/100))
	clear(w.Header()) // ids of its own, but not where the answer brings some
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
		panic(http.ErrAbortHandler) // so that its client does not take it for whole
	}
}

// unreachable answers a call whose answer has not come. Whether it was executed is not known.
func (p *Proxy) unreachable(
	w http.ResponseWriter, r *http.Request, x *wire.Exchange, err error,
) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		p.meters.count("other", "gone")
		panic(http.ErrAbortHandler) // an empty answer would be one
	}
	p.fail(w, x, "other", wire.Unavailable(fmt.Sprintf(
		"The proxy has no answer to %s from %s: %v", x.Call.Operation, p.behind.url, err)))
}

// copyBody copies an answer. Every part has its time to be read.
func (p *Proxy) copyBody(w http.ResponseWriter, body io.Reader) error {
	_, err := io.Copy(deadlined{p, w}, body)
	return err
}

// deadlined gives the client its time for every write.
type deadlined struct {
	proxy *Proxy
	to    http.ResponseWriter
}

func (d deadlined) Write(data []byte) (int, error) {
	d.proxy.allow(d.to)
	return d.to.Write(data)
}
