package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Without keys, a page of another machine cannot call, and with and without keys it cannot read the
// server's own pages, over every protocol. Other clients do both as before.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	const keys = "[a]\naws_access_key_id = AKID\naws_secret_access_key = b\n"
	for _, auth := range []string{"", keys} {
		cfg := Config{Credentials: Credentials(auth), AllowOrigins: []string{"https://app.example"}}
		overEachProtocol(t, cfg, func(t *testing.T, s *streaming) {
			for _, c := range []struct {
				host, origin, site string
				call, page         bool // are served
			}{
				{"", "", "", true, true},
				{"tunnel.example", "", "", true, false},
				{"", "http://localhost:3000", "same-site", true, true},
				{"", "https://app.example", "cross-site", true, true},
				{"app.example", "", "", true, true},
				{"", "", "cross-site", true, false},
				{"", "https://evil.example", "cross-site", auth != "", false},
				{"evil.example", "http://evil.example", "same-origin", auth != "", false},
				{"evil.example", "", "same-origin", true, false},
				{"", "null", "cross-site", auth != "", false},
			} {
				for _, path := range []string{
					"GET /metrics", "HEAD /health", "POST /", "OPTIONS /", "POST /metrics",
				} {
					method, path, _ := strings.Cut(path, " ")
					if method == http.MethodOptions && c.origin == "" {
						continue // no preflight, and so no call
					}
					isPage := method == http.MethodGet || method == http.MethodHead
					want := isPage && c.page || !isPage && c.call
					s.wantAllowed(t, method, path, c.host, c.origin, c.site, want)
				}
			}
		})
	}
}

// wantAllowed sends a request of a page, which is refused with 403 and without permission, or not.
func (s *streaming) wantAllowed(
	t *testing.T, method, path, host, origin, site string, want bool,
) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for name, value := range map[string]string{
		"Origin": origin, "Sec-Fetch-Site": site, "Content-Type": "application/x-amz-json-1.1",
		"X-Amz-Target": "Kinesis_20131202.ListStreams",
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	shared := answer.Header.Get("Access-Control-Allow-Origin")
	if refused := answer.StatusCode == http.StatusForbidden; refused == want ||
		(shared == "*") != (want && origin != "") {
		t.Errorf("%s %s to %q from %q %s: %s %s, shared with %q", method, path, host, origin, site,
			answer.Status, body, shared)
	}
}

// A page's call is refused before its body is there, whichever way the connection is served.
func TestForeignPageWithoutItsBody(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "http/1.1")
	for _, head := range []string{"", "Connection: close\r\n"} { // which takes net/http's way
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 15000000\r\n"+
			"Origin: http://evil.example\r\n\r\n{", head)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "evil.example") {
			t.Errorf("%s %s", answer.Status, body)
		}
	}
}
