package runneltest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// network connects clients to the server: by loopback TCP, or by pipes in memory. The address
// stays the same over restarts.
type network struct {
	memory bool
	addr   string

	mu   sync.Mutex
	live *cutListener
}

const (
	memoryHost = "runnel.localhost"
	memoryAddr = memoryHost + ":80"
)

// listen opens the address, for the first time or again.
func (n *network) listen(ctx context.Context) (net.Listener, error) {
	var inner net.Listener
	if n.memory {
		n.addr = memoryAddr
		inner = &pipeListener{accept: make(chan net.Conn), closed: make(chan struct{})}
	} else {
		var listening net.ListenConfig
		tcp, err := listening.Listen(ctx, "tcp", n.addr)
		if err != nil {
			return nil, fmt.Errorf("runneltest: listen on %s: %w", n.addr, err)
		}
		n.addr = tcp.Addr().String()
		inner = tcp
	}
	live := &cutListener{Listener: inner, conns: map[net.Conn]struct{}{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.live = live
	return live, nil
}

// cut closes the listener and every connection, at once.
func (n *network) cut() {
	n.mu.Lock()
	live := n.live
	n.live = nil
	n.mu.Unlock()
	if live != nil {
		live.cut()
	}
}

// dial connects to the server. In memory it ignores the address, since there is only one server.
func (n *network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	if !n.memory {
		return (&net.Dialer{}).DialContext(ctx, kind, addr)
	}
	n.mu.Lock()
	live := n.live
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: memAddr{}, Err: syscall.ECONNREFUSED}
	if live == nil {
		return nil, refused
	}
	pipes := live.Listener.(*pipeListener)
	client, server := net.Pipe()
	select {
	case pipes.accept <- server:
		return client, nil
	case <-pipes.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: memAddr{}, Err: ctx.Err()}
	}
}

// cutListener keeps the connections that it has accepted, so that cut can close all of them.
type cutListener struct {
	net.Listener

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil once cut
}

func (l *cutListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &cutConn{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.conns[conn] = struct{}{}
	return counted, nil
}

func (l *cutListener) cut() {
	_ = l.Listener.Close()
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
}

type cutConn struct {
	net.Conn
	of *cutListener
}

func (c *cutConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// pipeListener accepts pipes.
type pipeListener struct {
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return memAddr{} }

type memAddr struct{}

func (memAddr) Network() string { return "memory" }
func (memAddr) String() string  { return memoryAddr }
