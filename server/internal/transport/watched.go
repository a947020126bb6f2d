package transport

import (
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// lookEvery is the time after which a write that waits for its client looks at its progress.
	lookEvery = 250 * time.Millisecond
	// trial is the first part of a long body. A client that takes it within lookEvery is fast.
	trial = 1 << 20
	// fastUnsent is maxUnsent for fast clients. Each time that the system takes more bytes, the
	// writer is woken: 128 KiB at a time, that costs a third of what the copying costs.
	fastUnsent = 4 << 20
)

// WriteWatched writes a whole body, whose length the handler has set. It calls watch at once, and
// again every quarter of a second while it waits for the client: with the bytes that the client's
// side has taken, and with the time for which it has waited, without pauses of the process. Once
// watch returns false, the connection ends.
//
// A single write of 14 MB takes two thirds of the processor time of 440 small ones. The progress of
// a long write is known to the system alone, so each look asks it.
func (a *shortcutAnswer) WriteWatched(
	body []byte, watch func(gone int, waited time.Duration) (goOn bool),
) error {
	a.WriteHeader(http.StatusOK)
	a.sent, a.left = true, 0
	a.head()
	w := watchedWrite{conn: a.conn.conn.Conn, watch: watch, head: a.buffer.Len()}
	first := min(trial, len(body))
	a.err = w.write(net.Buffers{a.buffer.Bytes(), body[:first]})
	if a.err == nil && first < len(body) {
		w.expect(!w.waits)
		a.err = w.write(net.Buffers{body[first:]})
		w.expect(false)
	}
	a.writeBy = time.Time{} // the next answer needs a deadline of its own
	return a.err
}

// watchedWrite is one call of WriteWatched.
type watchedWrite struct {
	conn   net.Conn
	watch  func(gone int, waited time.Duration) (goOn bool)
	head   int           // bytes before the body
	sent   int           // bytes that the system has taken, head included
	waits  bool          // the client has not taken all of them within lookEvery
	waited time.Duration // the times between the looks
	fast   bool          // fastUnsent is set
}

// expect sets the bound of unsent bytes for a fast or a slow client.
func (w *watchedWrite) expect(fast bool) {
	if fast == w.fast {
		return
	}
	if w.fast = fast; fast {
		limitUnsent(w.conn, fastUnsent)
	} else {
		limitUnsent(w.conn, maxUnsent)
	}
}

func (w *watchedWrite) write(parts net.Buffers) error {
	for {
		began := time.Now()
		if err := w.conn.SetWriteDeadline(began.Add(lookEvery)); err != nil {
			return err
		}
		// A connection that is cut off from now on has a deadline that remains.
		if !w.watch(w.gone(), w.waited) {
			w.dropUnsent()
			return os.ErrDeadlineExceeded
		}
		n, err := parts.WriteTo(w.conn)
		if w.sent += int(n); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		w.waits = true
		w.expect(false)
		w.waited += min(time.Since(began), 2*lookEvery) // more is a pause of the process
	}
}

// gone returns the bytes of the body that the client's side has taken.
func (w *watchedWrite) gone() int {
	if w.sent == 0 {
		return 0
	}
	return max(0, w.sent-w.head-unsent(w.conn))
}

// dropUnsent makes the system forget the unsent bytes when the connection is closed. Otherwise it
// would hold megabytes for a slow client for minutes.
func (w *watchedWrite) dropUnsent() {
	if tcp, ok := w.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
