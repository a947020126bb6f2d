package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Time-outs of a connection, and what one of HTTP/2 may hold.
const (
	headerTimeout  = 10 * time.Second // of a request's head, of a TLS handshake
	readTimeout    = 2 * time.Minute  // of a request with its body, not of its handling
	idleTimeout    = 3 * time.Minute  // longer than clients keep idle connections
	maxHeader      = 64 << 10
	streamsPerConn = 250
	streamWindow   = 256 << 10
	// lastWords is how long those have to read an answer who were told that there is none.
	lastWords = 2 * time.Second
)

// Serve answers on the listener, which it closes, until ctx ends: HTTP/1.1 and HTTP/2, with
// Config.TLS encrypted, else by prior knowledge. Then it takes no more connections, ends event
// streams, delivers what was taken and answers, for at most Config.ShutdownTimeout, and closes
// the producers.
//
// It returns nil after that, and an error if the listener failed, or if records were given up
// for lack of time: those who wait for them are told so.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	under := context.WithoutCancel(ctx)
	h := p.httpServer(under)
	ended := make(chan error, 1)
	go func() {
		if h.TLSConfig != nil {
			ended <- h.ServeTLS(listener, "", "")
		} else {
			ended <- h.Serve(listener)
		}
	}()
	select {
	case err := <-ended:
		closing, cancel := context.WithTimeout(under, p.cfg.ShutdownTimeout)
		defer cancel()
		return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), p.Close(closing),
			h.Close())
	case <-ctx.Done():
	}
	err := p.shutDown(under, h)
	<-ended //nolint:errcheck // it is http.ErrServerClosed
	return err
}

// shutDown ends the proxy and its server. The calls under way end by themselves, with their
// records; when the time is over, closing the producers ends them.
func (p *Proxy) shutDown(under context.Context, h *http.Server) error {
	p.end()
	closing, cancel := context.WithTimeout(under, p.cfg.ShutdownTimeout)
	defer cancel()
	late := h.Shutdown(closing)
	err := p.Close(closing)
	if late == nil {
		return err
	}
	last, cancelLast := context.WithTimeout(under, lastWords)
	defer cancelLast()
	if late = h.Shutdown(last); late != nil {
		err = errors.Join(err, errors.New("calls were still under way and have been cut off"),
			h.Close())
	}
	return err
}

func (p *Proxy) httpServer(under context.Context) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	h := &http.Server{
		Handler:           p.Handler(),
		BaseContext:       func(net.Listener) context.Context { return under },
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(p.cfg.Logger.Handler(), slog.LevelDebug),
		Protocols:         protocols,
		HTTP2: &http.HTTP2Config{
			// A request that waits for memory does not read. What has come of it by then must
			// not take the connection's window from those that have their memory.
			MaxConcurrentStreams:          streamsPerConn,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: streamsPerConn * streamWindow,
			// A subscriber that has lost its network without a goodbye is noticed.
			SendPingTimeout:  30 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: writeTimeout,
		},
	}
	if p.cfg.TLS != nil {
		h.TLSConfig = p.cfg.TLS.Clone()
		h.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	return h
}
