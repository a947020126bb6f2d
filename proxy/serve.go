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

// The limits of connections.
const (
	headerTimeout  = 10 * time.Second // for a request's head, and for a TLS handshake
	readTimeout    = 2 * time.Minute  // for a request with its body, without its handling
	idleTimeout    = 3 * time.Minute  // longer than clients keep idle connections
	maxHeader      = 64 << 10         // bytes
	streamsPerConn = 100              // of HTTP/2
	streamWindow   = 256 << 10        // bytes that a stream of HTTP/2 buffers
	// answerTimeout limits the sending of the last answers, after the shutdown has given up
	// records.
	answerTimeout = 2 * time.Second
)

// Serve answers HTTP/1.1 and HTTP/2 on the listener until ctx ends. With Config.TLS both are
// encrypted; otherwise HTTP/2 goes by prior knowledge. When ctx ends, Serve accepts no more
// connections, ends event streams, delivers the records that were taken, answers their requests,
// and closes the producers. That takes at most Config.ShutdownTimeout, and 2 s for the last
// answers.
//
// Serve closes the listener. The error is nil after a complete shutdown. It is not nil if the
// listener failed or if the time was too short for some records; their clients get an
// InternalFailure.
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

// shutDown ends the proxy and its server. A put ends with the results of its records. After
// Config.ShutdownTimeout, Close gives the remaining records up, which ends the remaining puts.
func (p *Proxy) shutDown(under context.Context, h *http.Server) error {
	p.end()
	closing, cancel := context.WithTimeout(under, p.cfg.ShutdownTimeout)
	defer cancel()
	late := h.Shutdown(closing)
	err := p.Close(closing)
	if late == nil {
		return err
	}
	last, cancelLast := context.WithTimeout(under, answerTimeout)
	defer cancelLast()
	if late = h.Shutdown(last); late != nil {
		err = errors.Join(err, errors.New("some calls had no answer yet, and were cut off"),
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
			// A request that waits for memory does not read its body. The part that has arrived
			// must not use up the connection's window, which the other requests need.
			MaxConcurrentStreams:          streamsPerConn,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: streamsPerConn * streamWindow,
			// Pings detect a subscriber after a network failure that closes no connection.
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
