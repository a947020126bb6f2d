package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/pause"
)

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// readHead reads an answer's head, byte by byte.
func readHead(t *testing.T, conn net.Conn) string {
	t.Helper()
	var head strings.Builder
	for one := make([]byte, 1); !strings.HasSuffix(head.String(), "\r\n\r\n"); {
		if _, err := conn.Read(one); err != nil {
			t.Fatalf("after %q: %v", head.String(), err)
		}
		head.WriteByte(one[0])
	}
	return head.String()
}

// TestSilentConnections hold up neither calls nor the end, however far they have come.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "https h2")
	var silent []net.Conn
	for _, said := range []string{
		"", "\x16", "\x16\x03\x01", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/1.1\r\nHo",
	} {
		for range 10 {
			conn := dial(t, s.address)
			send(t, conn, said)
			silent = append(silent, conn)
		}
	}
	handshaken := tls.Client(dial(t, s.address), &tls.Config{
		RootCAs:    s.client.Transport.(*http.Transport).TLSClientConfig.RootCAs,
		ServerName: "127.0.0.1",
	})
	if err := handshaken.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantAnswer(t)
	s.client.CloseIdleConnections()
	began := time.Now()
	s.stop()
	if err := s.served(); err != nil {
		t.Error(err)
	}
	if passed := time.Since(began); passed > 4*time.Second {
		t.Errorf("the end took %v", passed)
	}
	for i, conn := range append(silent, handshaken) {
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d outlived the server", i)
		}
	}
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	errs   chan error
	closed chan struct{}
}

func newPipes() *pipes {
	return &pipes{make(chan net.Conn), make(chan error), make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes:1", Net: "unix"} }

// TestDoor: who says nothing is sent away in time, who says something comes in whole.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := newPipes()
		d := newDoor(inside, nil, pause.New(), slog.New(slog.DiscardHandler))
		d.open()
		silent, far := net.Pipe()
		inside.conns <- far
		began := time.Now()
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the silent one: %v", err)
		}
		if passed := time.Since(began); passed != headerTimeout {
			t.Errorf("it was sent away after %v, want %v", passed, headerTimeout)
		}
		talks, near := net.Pipe()
		inside.conns <- near
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
			inside.errs <- again
			if _, err := d.Accept(); !errors.Is(err, again) {
				t.Errorf("a listener that fails: %v", err)
			}
		}
		waits, late := net.Pipe()
		inside.conns <- late
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
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
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

// A connection that has waited to be accepted for as long as file descriptors were wanting is closed:
// what it brings may be too old. One that comes after that is served.
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
