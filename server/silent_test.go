package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
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

// TestSilentConnections delay neither calls nor the end, at any stage of a connection.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "https h2")
	var silent []net.Conn
	for _, said := range []string{
		"", "\x16", "\x16\x03\x01", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST / HTTP/1.1\r\nHo",
	} {
		for range 10 {
			conn := dial(t, s.address)
			if _, err := io.WriteString(conn, said); err != nil {
				t.Fatal(err)
			}
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
