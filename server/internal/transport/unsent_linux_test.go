package transport

import (
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// The progress of a client that reads 200 KB a second shows within each second, although the system
// has room for megabytes.
func TestProgressOfSlowClientsShows(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.(*net.TCPConn).SetReadBuffer(32 << 10)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	limitUnsent(conn, maxUnsent)
	piece := make([]byte, 16<<10)
	write := func(within time.Duration) (sent int) {
		_ = conn.SetWriteDeadline(time.Now().Add(within))
		for {
			n, err := conn.Write(piece)
			if sent += n; err != nil {
				if !os.IsTimeout(err) {
					t.Fatal(err)
				}
				return sent
			}
		}
	}
	if sent := write(200 * time.Millisecond); sent > 1<<20 {
		t.Errorf("the system has taken %d bytes of a client that reads nothing", sent)
	}
	eachSecond(t, client, func() (moved int) { return write(time.Second) })
}

// eachSecond reads 200 KB a second from a client, and checks that three seconds show it: moved
// returns the bytes of one. Those in which a busy machine let the client read less do not count.
func eachSecond(t *testing.T, client net.Conn, moved func() int) {
	t.Helper()
	var read atomic.Int64
	defer readSlowly(client, &read)()
	shown := 0
	for try := 0; shown < 3 && try < 20; try++ {
		before := read.Load()
		n := moved()
		if read.Load()-before < 150_000 {
			continue
		}
		if shown++; n < 64<<10 || n > 1<<20 {
			t.Errorf("%d bytes in a second", n)
		}
	}
	if shown < 3 {
		t.Error("the machine is too busy: the client has read less than 200 KB in most seconds")
	}
}

// readSlowly reads 200 KB a second until stop, and counts them.
func readSlowly(client net.Conn, read *atomic.Int64) (stop func()) {
	stopping, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for p := make([]byte, 10_000); ; {
			select {
			case <-stopping:
				return
			case <-time.After(50 * time.Millisecond):
				n, _ := client.Read(p)
				read.Add(int64(n))
			}
		}
	}()
	return func() {
		close(stopping)
		<-ended
	}
}
