package transport

import (
	"net"
	"os"
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
	defer readSlowly(client)()
	for range 3 {
		if sent := write(time.Second); sent < 64<<10 {
			t.Errorf("%d bytes in a second", sent)
		}
	}
}

// readSlowly reads 200 KB a second until stop.
func readSlowly(client net.Conn) (stop func()) {
	stopping, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for p := make([]byte, 10_000); ; {
			select {
			case <-stopping:
				return
			case <-time.After(50 * time.Millisecond):
				_, _ = client.Read(p)
			}
		}
	}()
	return func() {
		close(stopping)
		<-ended
	}
}
