package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// farListener accepts connections as if they came to an address that other machines reach.
type farListener struct{ net.Listener }

type farConn struct{ net.Conn }

func (l farListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{conn}, nil
}

func (farConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

// plainClient speaks one protocol, unencrypted.
func plainClient(t *testing.T, protocol string) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(protocol == "http/1.1")
	transport.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestPlainBesideTLS: one port takes both, while no other machine can reach it.
func TestPlainBesideTLS(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "https h2")
	s.wantAnswer(t)
	encrypted := s.client
	defer func() { s.client = encrypted }()
	s.url = "http://" + s.address
	for _, protocol := range []string{"http/1.1", "h2c"} {
		s.client = plainClient(t, protocol)
		s.wantAnswer(t)
	}
}

// TestPlainFromAfar is refused clearly, whatever it asks for, and TLS is not.
func TestPlainFromAfar(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "far https h2")
	s.wantAnswer(t)
	encrypted := s.client
	defer func() { s.client = encrypted }()
	s.url = "http://" + s.address
	for _, protocol := range []string{"http/1.1", "h2c"} {
		s.client = plainClient(t, protocol)
		answer, err := s.post(t.Context(), "ListStreams", strings.Repeat(" ", 5<<20))
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "https://") {
			t.Errorf("%s: %s %s", protocol, answer.Status, body)
		}
	}
}

// TestProtocolsOfTLS: the client's offer decides, and HTTP/2 goes first.
func TestProtocolsOfTLS(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "https h2")
	roots := s.client.Transport.(*http.Transport).TLSClientConfig.RootCAs
	for want, offered := range map[string][]string{
		"h2": {"http/1.1", "h2"}, "http/1.1": {"http/1.1"}, "": nil,
	} {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: roots, NextProtos: offered,
		}}).DialContext(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != want {
			t.Errorf("of %q: %q, want %q", offered, got, want)
		}
		conn.Close()
	}
	_, err := (&tls.Dialer{Config: &tls.Config{
		RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10,
	}}).DialContext(context.WithoutCancel(t.Context()), "tcp", s.address)
	if err == nil {
		t.Error("TLS 1.1 was taken")
	}
}
