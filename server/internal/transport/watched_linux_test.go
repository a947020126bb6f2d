package transport

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The progress of a watched answer is what its client has taken, and not what the system has: a
// client that reads nothing makes none, and one that reads 200 KB a second shows it.
func TestWatchedProgress(t *testing.T) {
	body := watchedBody(14 << 20)
	gone := make(chan int, 1000)
	address := watchedServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = watch(w, body, func(n int, _ time.Duration) bool {
			gone <- n
			return r.Context().Err() == nil
		})
	})
	conn := dialSmall(t, address)
	_, _ = io.WriteString(conn, plainCall("", ""))
	latest := func(after time.Duration) (n int) {
		end := time.After(after)
		for {
			select {
			case n = <-gone:
			case <-end:
				return n
			}
		}
	}
	before := latest(time.Second)
	if before > 1<<20 {
		t.Errorf("%d bytes of a client that reads nothing", before)
	}
	if still := latest(2 * time.Second); still != before {
		t.Errorf("it went on from %d to %d", before, still)
	}
	eachSecond(t, conn, func() (moved int) {
		now := latest(time.Second)
		moved, before = now-before, now
		return moved
	})
}

// The system takes more of a fast client's answer at once. It stops that when the client becomes
// slow, and after the answer. The bytes that it has taken are no progress, and are dropped with the
// connection.
func TestWatchedFastClients(t *testing.T) {
	type look struct{ gone, bound int }
	var looks []look
	served := make(chan net.Conn)
	body := watchedBody(14 << 20)
	address := watchedServer(t, func(w http.ResponseWriter, r *http.Request) {
		raw := r.Context().Value(shortcutKey{}).(*shortcutConn).conn.Conn
		note := func(gone int, _ time.Duration) bool {
			control(raw, func(fd int) {
				bound, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
				if err != nil {
					t.Error(err)
				}
				looks = append(looks, look{gone, bound})
			})
			return len(looks) < 4
		}
		_ = watch(w, body, note)
		note(0, 0)
		served <- raw
	})
	// call reads so many bytes of an answer, and returns the server's looks. Then it reads the rest.
	call := func(read int64) (got []look, rest int64) {
		looks = nil
		conn := dialSmall(t, address)
		defer conn.Close()
		_, _ = io.WriteString(conn, plainCall("", ""))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			_, err = io.CopyN(io.Discard, answer.Body, read)
		}
		if err != nil {
			t.Fatal(err)
		}
		raw := <-served
		for read < int64(len(body)) && raw.SetDeadline(time.Time{}) == nil {
			time.Sleep(time.Millisecond) // the server closes it now
		}
		rest, _ = io.Copy(io.Discard, answer.Body)
		return looks, rest
	}
	// A busy machine can be slow itself.
	whole, broken := false, false
	for try := 0; try < 20 && !(whole && broken); try++ {
		got, _ := call(int64(len(body)))
		whole = whole || len(got) == 3 &&
			got[0].bound == maxUnsent && got[1].bound == fastUnsent && got[2].bound == maxUnsent
		got, rest := call(4 << 20)
		if len(got) == 5 && got[1].bound == fastUnsent {
			broken = true
			if got[2].bound != maxUnsent || got[3].gone < 4<<20 || got[3].gone > 5<<20 {
				t.Errorf("a client that stops: %v", got)
			}
			if rest > 1<<20 {
				t.Errorf("the system has sent %d bytes more after the connection's end", rest)
			}
		}
	}
	if !whole || !broken {
		t.Errorf("never fast: whole %v, broken %v", whole, broken)
	}
}

func watchedServer(t *testing.T, handle http.HandlerFunc) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	carry(t, listener, handle)
	return listener.Addr().String()
}

// dialSmall dials with a small receive buffer.
func dialSmall(t *testing.T, address string) net.Conn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10)
		})
	}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
