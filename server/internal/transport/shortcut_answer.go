package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// exactBelow is the longest time for a write that is set exactly.
const exactBelow = 20 * time.Second

// joinedBody is the longest body that is copied behind its head, for a single write.
const joinedBody = 4 << 10

// shortcutAnswer is the http.ResponseWriter of a call on the shortcut. It is used again for the
// next call of its connection.
type shortcutAnswer struct {
	shortcut *shortcut
	conn     *shortcutConn
	header   http.Header
	status   int // 0: none yet
	buffer   bytes.Buffer
	body     []byte    // written but not sent yet, if the handler gave no length
	sent     bool      // head and body
	left     int       // bytes of the body after the head, if the handler gave a length
	last     bool      // the connection ends with this answer
	err      error     // of the connection
	writeBy  time.Time // the write deadline
}

func (a *shortcutAnswer) begin() {
	clear(a.header)
	a.status, a.body, a.sent, a.left, a.last = 0, nil, false, 0, false
}

func (a *shortcutAnswer) Header() http.Header { return a.header }

func (a *shortcutAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write sends the head and p if the handler has set the body's length, and the next parts.
func (a *shortcutAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.sent {
		if len(p) > a.left {
			return 0, http.ErrContentLength
		}
		a.left -= len(p)
		_, a.err = a.conn.conn.Write(p)
		return len(p), a.err
	}
	if length := a.header["Content-Length"]; a.body == nil && len(length) == 1 {
		if n, err := strconv.Atoi(length[0]); err == nil && n >= len(p) {
			a.left = n - len(p)
			return len(p), a.send(p)
		}
	}
	a.body = append(a.body, p...)
	return len(p), nil
}

// finish sends the rest of the written bytes.
func (a *shortcutAnswer) finish() error {
	if !a.sent {
		a.WriteHeader(http.StatusOK)
		a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
		return a.send(a.body)
	}
	if a.left > 0 {
		return errors.New("the answer is not whole")
	}
	return a.err
}

func (a *shortcutAnswer) send(body []byte) error {
	a.sent = true
	a.head()
	if len(body) <= joinedBody {
		a.buffer.Write(body)
		_, a.err = a.conn.conn.Write(a.buffer.Bytes())
		return a.err
	}
	parts := net.Buffers{a.buffer.Bytes(), body}
	_, a.err = parts.WriteTo(a.conn.conn.Conn)
	return a.err
}

// head makes the answer's head, in the buffer.
func (a *shortcutAnswer) head() {
	a.last = a.shortcut.closing.Load() || a.header.Get("Connection") == "close"
	if a.last {
		a.header.Set("Connection", "close")
	}
	a.buffer.Reset()
	if a.status == http.StatusOK {
		a.buffer.WriteString("HTTP/1.1 200 OK\r\n")
	} else {
		fmt.Fprintf(&a.buffer, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	}
	a.header["Date"] = a.shortcut.date()
	_ = a.header.Write(&a.buffer) // a buffer takes everything
	a.buffer.WriteString("\r\n")
}

// SetReadDeadline sets the deadline for the body's bytes that have not come yet. The next request
// gets its own deadline. A deadline in the past, which ends the connection, may be set from any
// goroutine.
func (a *shortcutAnswer) SetReadDeadline(deadline time.Time) error {
	switch {
	case a.conn.bodyIsHere || deadline.IsZero():
	case deadline.Before(time.Now()):
		return a.conn.conn.SetReadDeadline(deadline)
	default:
		a.conn.readUntil(deadline)
	}
	return nil
}

// SetWriteDeadline keeps a deadline that is up to a quarter nearer: a new one for every answer is
// expensive.
func (a *shortcutAnswer) SetWriteDeadline(deadline time.Time) error {
	now := time.Now()
	left, want := a.writeBy.Sub(now), deadline.Sub(now)
	switch {
	case want < 0: // ends the connection, and may be set from any goroutine
		return a.conn.conn.SetWriteDeadline(deadline)
	case want > exactBelow && left <= want && left >= want-want/4:
		return nil
	}
	a.writeBy = deadline
	return a.conn.conn.SetWriteDeadline(deadline)
}

// SetDate sets the header Date of an answer. Without it net/http would use the system's clock. A
// shortcutAnswer sets it by itself when it is sent.
func SetDate(w http.ResponseWriter, date func() []string) {
	if _, ok := w.(*shortcutAnswer); !ok {
		w.Header()["Date"] = date()
	}
}
