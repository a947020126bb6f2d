// Package pipes has a listener for connections in memory (net.Pipe). The server's tests use it in
// synctest bubbles, where a real socket would stop virtual time.
package pipes

import "net"

// Listener is a net.Listener. Accept returns the connections and errors that a test sends to Conns
// and Errs.
type Listener struct {
	Conns  chan net.Conn
	Errs   chan error
	closed chan struct{}
}

// New returns an open listener.
func New() *Listener {
	return &Listener{make(chan net.Conn), make(chan error), make(chan struct{})}
}

// Dial makes a connection, gives one end to Accept, and returns the other. It blocks until Accept.
func (l *Listener) Dial() net.Conn {
	near, far := net.Pipe()
	l.Conns <- far
	return near
}

// Accept waits for a connection or an error, and returns net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.Conns:
		return conn, nil
	case err := <-l.Errs:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It may be called once.
func (l *Listener) Close() error { close(l.closed); return nil }

// Addr returns an address without a port.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes:1", Net: "unix"} }
