package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// watchAfter is the time after which the client of a call on the shortcut is watched. Most calls
// end before. The others wait: for the log, for memory, or for a delay on request. A client that
// gives up calls again, so its first call must not keep its place.
const watchAfter = time.Second

// clientWatch ends the context of a shortcutConn's calls when the client goes. It reads ahead in
// the connection, so the call must have read its body.
type clientWatch struct {
	gone  context.CancelFunc
	timer *time.Timer // nil before the first call
	on    bool        // from watchClient to unwatchClient
	ended chan struct{}

	mu      sync.Mutex
	stopped bool
}

// watchClient begins the watch of a call, some time from now.
func (c *shortcutConn) watchClient() {
	w := &c.watch
	w.on = true
	if w.timer != nil {
		w.timer.Reset(watchAfter)
		return
	}
	w.ended = make(chan struct{}, 1)
	w.timer = time.AfterFunc(watchAfter, c.readAhead)
}

// readAhead returns when the client has gone or sends its next request, or when the watch ends.
func (c *shortcutConn) readAhead() {
	w := &c.watch
	defer func() { w.ended <- struct{}{} }()
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	w.mu.Unlock()
	_, err := c.in.Peek(1)
	var passed net.Error
	if err != nil && (!errors.As(err, &passed) || !passed.Timeout()) {
		w.gone()
	}
}

// unwatchClient ends the watch of a call, if it has begun: a call may be refused before its body is
// read. It returns once nothing reads ahead.
func (c *shortcutConn) unwatchClient() {
	w := &c.watch
	was := w.on
	w.on = false
	if !was || w.timer.Stop() {
		return
	}
	w.mu.Lock()
	w.stopped = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	w.mu.Unlock()
	<-w.ended
	w.stopped = false
	c.readUntil(time.Now().Add(readTimeout)) // for the rest of a body that was refused
}
