package outbox_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a proxy between a relay and PostgreSQL that loses answers of statements.
type wire struct {
	t        *testing.T
	listener net.Listener
	target   string
	marks    [][]byte // a statement with one of these texts may be hit
	hits     atomic.Int64
	off      atomic.Bool
	refuse   atomic.Bool  // new connections hang at once
	hung     atomic.Int64 // connections up to this number pass nothing on
	accepted atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
	conns  map[net.Conn]bool
}

// newWire returns a proxy to a server and the URL through it.
func newWire(t *testing.T, target string, marks ...string) (w *wire, through string) {
	t.Helper()
	at, err := url.Parse(target)
	must(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	w = &wire{
		t: t, listener: listener, target: at.Host, random: rand.New(rand.NewPCG(1, 2)),
		conns: map[net.Conn]bool{},
	}
	for _, mark := range marks {
		w.marks = append(w.marks, []byte(mark))
	}
	at.Host = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		for conn := range w.conns {
			_ = conn.Close()
		}
		w.mu.Unlock()
		serving.Wait()
	})
	return w, at.String()
}

func (w *wire) keep(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[conn] = true
}

func (w *wire) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// hang lets every connection that there is pass nothing on any more. They are not closed.
func (w *wire) hang() { w.hung.Store(w.accepted.Load()) }

// serve passes the bytes of one connection on.
func (w *wire) serve(client net.Conn) {
	w.keep(client)
	defer client.Close()
	number := w.accepted.Add(1)
	hangs := func() bool { return w.hung.Load() >= number || w.refuse.Load() }
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	w.keep(server)
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(unless{client, hangs}, server)
		_ = client.Close()
	})
	defer back.Wait()
	defer server.Close()
	chunk := make([]byte, 1<<20)
	for {
		n, err := client.Read(chunk)
		if err != nil {
			return
		}
		if hangs() {
			continue
		}
		hit := false
		for _, mark := range w.marks {
			hit = hit || bytes.Contains(chunk[:n], mark)
		}
		if !hit || w.off.Load() || w.draw(6) > 0 {
			if _, err := server.Write(chunk[:n]); err != nil {
				return
			}
			continue
		}
		w.hits.Add(1)
		if w.draw(2) == 0 { // the statement is carried out, and its answer lost
			_ = client.Close()
			_, _ = server.Write(chunk[:n])
			time.Sleep(20 * time.Millisecond) // the server reads it before the connection ends
			return
		}
		// The answer is lost at once, and the statement carried out late.
		_ = client.Close()
		time.Sleep(time.Duration(w.draw(300)) * time.Millisecond) // the network's delay
		_, _ = server.Write(chunk[:n])
		time.Sleep(20 * time.Millisecond) // as above
		return
	}
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
