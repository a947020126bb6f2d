package server

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// tlsHandshake is the first byte of a TLS connection: the record type of a ClientHello (RFC
// 8446, 5.1). No HTTP request begins with it.
const tlsHandshake = 0x16

// door is a listener that hands a connection on once its first byte has come, so that one port
// takes TLS and plain connections. Who connects and says nothing holds up nobody: each
// connection waits on a goroutine of its own, for at most headerTimeout, and Close ends the
// wait at once. Clients open connections in advance, and http.Server.Shutdown would wait 5 s
// for each.
type door struct {
	net.Listener
	tls *tls.Config // nil: plain connections only

	ready  chan arrival
	closed chan struct{}
	busy   sync.WaitGroup // run, and the waits for first bytes

	mu    sync.Mutex
	shut  bool
	waits map[*firstByteConn]struct{}
}

// arrival is what Accept returns.
type arrival struct {
	conn net.Conn
	err  error
}

// newDoor takes over the listener. The caller ends the door with Close and then Wait.
func newDoor(listener net.Listener, config *tls.Config) *door {
	d := &door{
		Listener: listener, tls: config, ready: make(chan arrival),
		closed: make(chan struct{}), waits: map[*firstByteConn]struct{}{},
	}
	d.busy.Add(1)
	go d.run()
	return d
}

// run accepts until the listener is closed. An error goes to Accept's caller, which knows
// which ones pass; meanwhile run waits, so that a failing listener is not asked in a circle.
func (d *door) run() {
	defer d.busy.Done()
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			select {
			case d.ready <- arrival{err: err}:
				continue
			case <-d.closed:
				return
			}
		}
		d.admit(&firstByteConn{Conn: conn})
	}
}

// admit begins a connection's wait for its first byte.
func (d *door) admit(conn *firstByteConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		_ = conn.Close()
		return
	}
	d.waits[conn] = struct{}{}
	d.busy.Go(func() { d.meet(conn) })
}

// meet reads the first byte and hands the connection on, as TLS or plain.
func (d *door) meet(conn *firstByteConn) {
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
	_, err := conn.Conn.Read(conn.first[:])
	d.mu.Lock()
	delete(d.waits, conn)
	shut := d.shut
	d.mu.Unlock()
	if err != nil || shut {
		_ = conn.Close()
		return
	}
	conn.unread = true
	_ = conn.SetReadDeadline(time.Time{})
	if d.tls != nil && conn.first[0] == tlsHandshake {
		d.hand(tls.Server(conn, d.tls))
		return
	}
	d.hand(conn)
}

// hand gives a connection to Accept, or closes it once the door is closed.
func (d *door) hand(conn net.Conn) {
	select {
	case d.ready <- arrival{conn: conn}:
	case <-d.closed:
		_ = conn.Close()
	}
}

// Accept returns the next connection that has said something: a *tls.Conn if it is TLS.
func (d *door) Accept() (net.Conn, error) {
	select {
	case arrived := <-d.ready:
		return arrived.conn, arrived.err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and the connections that have said nothing yet.
func (d *door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return nil
	}
	d.shut = true
	close(d.closed)
	for conn := range d.waits {
		conn.expire()
	}
	return d.Listener.Close()
}

// Wait returns once nothing of the door goes on, after Close.
func (d *door) Wait() { d.busy.Wait() }

// firstByteConn is a connection whose first byte has been read, and is to be read again.
type firstByteConn struct {
	net.Conn
	first  [1]byte
	unread bool // first is to be read; for the reader alone

	mu      sync.Mutex
	expired bool
}

func (c *firstByteConn) Read(p []byte) (int, error) {
	if c.unread && len(p) > 0 {
		c.unread = false
		p[0] = c.first[0]
		return 1, nil
	}
	return c.Conn.Read(p)
}

// expire ends all reading, whatever deadline is set later: net/http sets one when it begins
// with a connection, which may be after that.
func (c *firstByteConn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *firstByteConn) SetReadDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expired {
		return nil
	}
	return c.Conn.SetReadDeadline(deadline)
}

// SetDeadline keeps an expired connection expired too.
func (c *firstByteConn) SetDeadline(deadline time.Time) error {
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	return c.SetWriteDeadline(deadline)
}

// CloseWrite lets the peer read an answer before the connection ends, where the connection
// knows how: see http.Server.
func (c *firstByteConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
