package transport

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/pipes"
)

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// TestDoor: a silent connection is closed in time, any other comes in whole.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := pipes.New()
		d := newDoor(inside, nil, pause.New(), slog.New(slog.DiscardHandler))
		d.open()
		silent, far := net.Pipe()
		inside.Conns <- far
		began := time.Now()
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the silent one: %v", err)
		}
		if passed := time.Since(began); passed != headerTimeout {
			t.Errorf("it was sent away after %v, want %v", passed, headerTimeout)
		}
		talks, near := net.Pipe()
		inside.Conns <- near
		go func() { _, _ = io.WriteString(talks, "\x16hello\n") }()
		conn, err := d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * headerTimeout) // the door's deadline is gone
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "\x16hello\n" {
			t.Errorf("it said %q, %v", line, err)
		}
		_ = conn.Close()
		again := errors.New("too many open files")
		for range 3 {
			inside.Errs <- again
			if _, err := d.Accept(); !errors.Is(err, again) {
				t.Errorf("a listener that fails: %v", err)
			}
		}
		waits, late := net.Pipe()
		inside.Conns <- late
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		d.Wait()
		if _, err := waits.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("who waits at the end: %v", err)
		}
		if _, err := d.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed door: %v", err)
		}
	})
}

// TestExpired: an end of reading stays one, and answers can be written on.
func TestExpired(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	conn := &earlyConn{Conn: near}
	conn.expire()
	later := time.Now().Add(time.Hour)
	if err := errors.Join(conn.SetReadDeadline(later), conn.SetDeadline(later)); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, expiredError{}) {
		t.Errorf("read: %v", err)
	}
	go func() { _, _ = conn.Write([]byte("x")) }()
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Errorf("write: %v", err)
	}
}

// A connection that is accepted while the door is being closed is closed too.
func TestConnectionAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(silentListener{}, nil, pause.New(), slog.New(slog.DiscardHandler))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		d.admit(&earlyConn{Conn: near, door: d})
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is open: %v", err)
		}
		d.Wait()
	})
}

// silentListener is never connected to.
type silentListener struct{ net.Listener }

func (silentListener) Close() error { return nil }

// failingListener fails for a minute, then has a connection at once and another one later.
type failingListener struct {
	net.Listener
	failures int
	conns    chan net.Conn
	closed   chan struct{}
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures < 60 {
		l.failures++
		time.Sleep(time.Second) // virtual
		return nil, syscall.EMFILE
	}
	select {
	case conn := <-l.conns:
		return conn, nil
	default:
	}
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *failingListener) Close() error {
	close(l.closed)
	return nil
}

// A connection that has waited to be accepted during a shortage of file descriptors is closed: its
// requests may be too old. One that comes after that is served.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &failingListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		near, far := net.Pipe()
		l.conns <- near
		d := newDoor(l, nil, pause.New(), slog.New(slog.DiscardHandler))
		accepted := make(chan net.Conn, 1)
		go func() {
			for {
				conn, err := d.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					accepted <- conn
				}
			}
		}()
		d.open()
		if _, err := io.WriteString(far, "x"); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("the connection that has waited is read: %v", err)
		}
		time.Sleep(time.Second)
		near, far = net.Pipe()
		l.conns <- near
		send(t, far, "x")
		conn := <-accepted
		_ = conn.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d.Wait()
	})
}
