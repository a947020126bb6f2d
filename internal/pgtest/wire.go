package pgtest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Wire is a proxy before a server that loses statements and answers. One in six messages that hold
// a mark is hit: its connection ends, and the message has reached the server, reaches it up to
// 300 ms later, or never does. It is safe for concurrent use.
type Wire struct {
	URL string // of the server, through the proxy

	listener net.Listener
	serving  sync.WaitGroup
	target   string
	marks    [][]byte
	often    atomic.Int64 // one in so many marked messages is hit; 0: none
	hits     atomic.Int64
	refuse   atomic.Bool  // new connections hang at once
	hung     atomic.Int64 // connections up to this number pass nothing on
	accepted atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
	conns  map[net.Conn]bool
}

// NewWire returns a proxy to the server of a URL. It ends with the test.
func NewWire(t testing.TB, target string, marks ...string) *Wire {
	t.Helper()
	at, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{
		listener: listener, target: at.Host, random: rand.New(rand.NewPCG(1, 2)),
		conns: map[net.Conn]bool{},
	}
	w.Hit(6)
	for _, mark := range marks {
		w.marks = append(w.marks, []byte(mark))
	}
	at.Host = listener.Addr().String()
	w.URL = at.String()
	w.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.serving.Go(func() { w.serve(t.Context(), conn) })
		}
	})
	t.Cleanup(w.Close)
	return w
}

// Close ends the proxy and its connections. Call it before the Close of a pool with hung
// connections, since the pool waits for them.
func (w *Wire) Close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.serving.Wait()
}

// Hit hits one in n messages with a mark from now on; 0 for none.
func (w *Wire) Hit(n int) { w.often.Store(int64(n)) }

// Hits returns how many messages were hit.
func (w *Wire) Hits() int64 { return w.hits.Load() }

// Hang makes the present connections pass nothing on. They remain open.
func (w *Wire) Hang() { w.hung.Store(w.accepted.Load()) }

// Refuse makes new connections hang from their beginning.
func (w *Wire) Refuse() { w.refuse.Store(true) }

func (w *Wire) keep(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[conn] = true
}

func (w *Wire) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func closed(conn net.Conn) { _ = conn.Close() }

// strikes reports whether a message is hit.
func (w *Wire) strikes(message []byte) bool {
	often := int(w.often.Load())
	for _, mark := range w.marks {
		if often > 0 && bytes.Contains(message, mark) {
			return w.draw(often) == 0
		}
	}
	return false
}

// serve passes the bytes of one connection on.
func (w *Wire) serve(ctx context.Context, client net.Conn) {
	w.keep(client)
	defer closed(client)
	number := w.accepted.Add(1)
	hangs := func() bool { return w.hung.Load() >= number || w.refuse.Load() }
	server, err := new(net.Dialer).DialContext(ctx, "tcp", w.target)
	if err != nil {
		return
	}
	w.keep(server)
	defer closed(server)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(unless{client, hangs}, server)
		if !hangs() {
			_ = client.Close()
		}
	})
	defer back.Wait()
	defer closed(server)
	chunk := make([]byte, 1<<20)
	for {
		n, err := client.Read(chunk)
		if err != nil {
			return
		}
		if hangs() {
			continue
		}
		if w.strikes(chunk[:n]) {
			w.hits.Add(1)
			_ = client.Close()
			w.late(server, chunk[:n])
			return
		}
		if _, err := server.Write(chunk[:n]); err != nil {
			return
		}
	}
}

// late passes a message of a closed client on: at once, after a while, or never.
func (w *Wire) late(server net.Conn, message []byte) {
	switch w.draw(3) {
	case 0:
		return
	case 1:
		time.Sleep(time.Duration(w.draw(300)) * time.Millisecond) // the network's delay
	}
	_, _ = server.Write(message)
	time.Sleep(20 * time.Millisecond) // the server reads it before the connection ends
}

// unless writes as long as a condition does not hold, and then drops everything.
type unless struct {
	to     io.Writer
	silent func() bool
}

func (u unless) Write(p []byte) (int, error) {
	if u.silent() {
		return len(p), nil
	}
	return u.to.Write(p)
}
