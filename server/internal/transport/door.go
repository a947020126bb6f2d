package transport

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/server/internal/pause"
)

// tlsHandshake is the first byte of a TLS connection: the record type of a ClientHello (RFC
// 8446, 5.1). No HTTP request begins with it.
const tlsHandshake = 0x16

// door is a listener that hands a connection on once its first byte has come, so that one port
// takes TLS and plain connections. Each connection waits on a goroutine of its own, so a silent one
// delays no other. It waits for at most headerTimeout, and Close ends the wait at once. Clients
// open connections in advance, and http.Server.Shutdown would wait 5 s for each.
type door struct {
	net.Listener
	tls    *tls.Config // nil: plain connections only
	pauses *pause.Watch
	logger *slog.Logger
	plain  func(conn *earlyConn) // takes them; returns once the door is closed, at the latest
	most   int                   // connections at a time

	ready  chan arrival
	closed chan struct{}
	busy   sync.WaitGroup // run, and the waits for first bytes

	mu      sync.Mutex
	shut    bool
	waits   map[*earlyConn]struct{} // for their first byte
	conns   map[*earlyConn]struct{} // all that are open
	count   uint64                  // of all connections
	crowded bootclock.Instant       // when the log last said so
}

// arrival is a result of Accept.
type arrival struct {
	conn net.Conn
	err  error
}

// newDoor takes over the listener. Accept returns plain connections like the others, unless the
// caller sets plain before it opens the door.
func newDoor(
	listener net.Listener, config *tls.Config, pauses *pause.Watch, logger *slog.Logger,
) *door {
	d := &door{
		Listener: listener, tls: config, pauses: pauses, logger: logger,
		ready: make(chan arrival), closed: make(chan struct{}),
		waits: map[*earlyConn]struct{}{}, conns: map[*earlyConn]struct{}{}, most: mostConns,
	}
	d.plain = func(conn *earlyConn) { d.hand(conn) }
	return d
}

// open starts accepting. The caller ends the door with Close and then Wait.
func (d *door) open() {
	d.busy.Go(d.run)
	remove := d.pauses.OnPause(d.paused)
	d.busy.Go(func() {
		<-d.closed
		remove()
	})
}

// run accepts until the listener is closed. Accept's caller gets the errors, since it knows which
// ones pass; meanwhile run waits, so that it does not retry a failing listener in a loop.
//
// The number of pauses is read before a connection is accepted, and after every connection from the
// accept queue of the last pause was closed. So no connection that waited there passes for a later
// one. If some time has passed since the server was made, run empties the queue as well: programs
// listen before they make a server, and its start, or their output, may have taken any time.
func (d *door) run() {
	pauses := uint64(0)
	if !d.pauses.Young() {
		pauses = beforeAll
	}
	var failing bootclock.Instant // first error since the queue was last empty
	for {
		if count := d.pauses.Count(); count != pauses && d.drain() {
			pauses = count
		}
		asked := bootclock.Now()
		conn, err := d.Listener.Accept()
		now := bootclock.Now()
		switch {
		case err == nil && failing.IsZero():
		case err == nil && now.Sub(asked) > acceptWaits:
			failing = bootclock.Instant{}
		case err == nil && now.Sub(failing) > d.pauses.Limit():
			_ = conn.Close() // it may have waited during all of the errors
			if d.drain() {
				failing = bootclock.Instant{}
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && setDeadline(d.Listener, time.Time{}):
			continue // paused has woken it
		case err != nil:
			if failing.IsZero() {
				failing = asked
			}
			select {
			case d.ready <- arrival{err: err}:
				continue
			case <-d.closed:
				return
			}
		}
		d.admit(&earlyConn{Conn: conn, door: d, pauses: pauses})
	}
}

// beforeAll marks a connection that must never be served; it is no number of pauses.
const beforeAll = math.MaxUint64

// acceptWaits is the least time of an Accept that has found the queue empty.
const acceptWaits = 100 * time.Millisecond

// paused closes the connections from before a pause. If such a connection has a call in progress,
// no more is read from it, so it ends after the answer. run empties the accept queue; if it waits
// there, paused wakes it.
func (d *door) paused() {
	setDeadline(d.Listener, time.Unix(1, 0))
	count := d.pauses.Count()
	d.mu.Lock()
	defer d.mu.Unlock()
	for conn := range d.conns {
		if conn.pauses != count {
			conn.cut()
		}
	}
}

// setDeadline sets the deadline of Accept, and reports whether the listener supports one.
func setDeadline(listener net.Listener, deadline time.Time) (ok bool) {
	l, ok := listener.(interface{ SetDeadline(t time.Time) error })
	return ok && l.SetDeadline(deadline) == nil
}

// drain empties the accept queue, and reports whether it could. It serves none of those
// connections.
func (d *door) drain() (ok bool) {
	closed, err := emptyQueue(d.Listener)
	if closed > 0 {
		d.logger.Warn("connections that had waited to be accepted are closed, unserved",
			"connections", closed)
	}
	if err != nil {
		d.logger.Warn("could not empty the accept queue; trying again", "error", err)
	}
	return err == nil
}

// admit begins a connection's wait for its first byte.
func (d *door) admit(conn *earlyConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut || !d.makeRoom() {
		_ = conn.Conn.Close() // the door has no entry for it, and its own Close takes d.mu
		return
	}
	limitUnsent(conn.Conn, maxUnsent)
	d.count++
	conn.number = d.count
	d.waits[conn], d.conns[conn] = struct{}{}, struct{}{}
	d.busy.Go(func() { d.meet(conn) })
}

// meet reads the first byte and hands the connection on, as TLS or plain.
func (d *door) meet(conn *earlyConn) {
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
	first := make([]byte, 1)
	_, err := conn.Read(first)
	d.mu.Lock()
	delete(d.waits, conn)
	shut := d.shut
	d.mu.Unlock()
	if err != nil || shut {
		_ = conn.Close()
		return
	}
	conn.early = first
	_ = conn.SetReadDeadline(time.Time{})
	if d.tls != nil && first[0] == tlsHandshake {
		d.hand(tls.Server(conn, d.tls))
		return
	}
	d.plain(conn)
}

// hand passes a connection to Accept, or closes it once the door is closed.
func (d *door) hand(conn net.Conn) {
	select {
	case d.ready <- arrival{conn: conn}:
	case <-d.closed:
		_ = conn.Close()
	}
}

// Accept returns the next connection that has sent its first byte: a *tls.Conn if it is TLS.
func (d *door) Accept() (net.Conn, error) {
	select {
	case arrived := <-d.ready:
		return arrived.conn, arrived.err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and the connections that have sent nothing yet.
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

// Wait returns once all of the door's goroutines have ended, after Close.
func (d *door) Wait() { d.busy.Wait() }

// earlyConn is a connection. Its first bytes were read early, and are read again from memory.
type earlyConn struct {
	net.Conn
	early  []byte // to be read first; for the reader alone
	door   *door  // nil: none keeps it
	pauses uint64 // of the process, before it was accepted
	number uint64 // the door's, in the order of their arrival

	mu      sync.Mutex
	expired bool
	serving int               // calls of it are under way
	began   bootclock.Instant // when the first byte of the request was read; zero: none yet
	read    bootclock.Instant // when the last bytes were read
}

// Close also removes the connection from the door.
func (c *earlyConn) Close() error {
	if c.door != nil {
		c.door.forget(c)
	}
	return c.Conn.Close()
}

func (d *door) forget(conn *earlyConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, conn)
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 && len(p) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.stamp()
	}
	if err != nil && c.isExpired() {
		err = expiredError{} // and no deadline of its request
	}
	return n, err
}

// expiredError ends the reading of a connection from before a pause, or from before the shutdown. A
// request that it cuts off gets no answer. It is a time-out for net/http, which answers nothing
// then, and not os.ErrDeadlineExceeded, which a body's own deadline is.
type expiredError struct{}

func (expiredError) Error() string   { return "the connection has expired" }
func (expiredError) Timeout() bool   { return true }
func (expiredError) Temporary() bool { return false }

func (c *earlyConn) isExpired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// cut ends a connection: at once, or after its calls in progress.
func (c *earlyConn) cut() {
	c.mu.Lock()
	idle := c.serving == 0
	c.mu.Unlock()
	if idle {
		_ = c.Conn.Close() // its owner sees that it is closed, and removes it from the door
		return
	}
	c.expire()
}

// expire ends all reading, also under later deadlines: net/http sets one when it begins with a
// connection, which may be after that.
func (c *earlyConn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *earlyConn) SetReadDeadline(deadline time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expired {
		return nil
	}
	return c.Conn.SetReadDeadline(deadline)
}

// SetDeadline keeps an expired connection expired too.
func (c *earlyConn) SetDeadline(deadline time.Time) error {
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	return c.SetWriteDeadline(deadline)
}

// CloseWrite lets the peer read an answer before the connection ends, if the connection supports
// it: see http.Server.
func (c *earlyConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
