package origin

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func request(t *testing.T, local, host string, headers map[string]string) *http.Request {
	t.Helper()
	ctx := context.WithValue(t.Context(), http.LocalAddrContextKey,
		net.Addr(&net.TCPAddr{IP: net.ParseIP(local), Port: 4567}))
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	r.Host = host
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return r
}

func TestGuard(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const here, far = "127.0.0.1", "192.0.2.1" // the address that the client has called
	const own4567 = "127.0.0.1:4567"
	guard, err := New([]string{
		"https://App.example.com:443/", "http://10.0.0.7:3000", "http://[2001:db8::1]",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		local, host, origin, site string
		call, page                bool
	}{
		{here, own4567, "", "", true, true},
		{here, "localhost:4567", "", "none", true, true},
		{here, "LOCALHOST.:4567", "", "same-origin", true, true},
		{here, "streams.localhost", "", "", true, true},
		{"::1", "[::1]:4567", "", "", true, true},
		{here, strings.ToUpper(own) + ":4567", "", "", true, true},
		{here, "host.docker.internal:4567", "", "", true, true},
		{here, "", "", "", true, true}, // HTTP/1.0
		{here, "evil.example:4567", "", "", true, false},
		{here, "localhost.evil.example", "", "", true, false},
		{here, "10.0.0.1:4567", "", "", true, false},
		{here, "evil.example:4567", "", "same-origin", true, false}, // rebound
		{here, "a b", "", "", true, false},
		{far, "streams.example:4567", "", "", true, true},
		{far, "streams.example:4567", "", "cross-site", true, false},

		{here, own4567, "http://localhost:3000", "same-site", true, true},
		{here, own4567, "http://127.0.0.1", "cross-site", true, true},
		{here, own4567, "https://[::1]:8443", "", true, true},
		{here, own4567, "http://a.localhost", "", true, true},
		{here, own4567, "", "same-site", true, false},
		{here, own4567, "", "cross-site", true, false},
		{here, own4567, "http://evil.example", "cross-site", false, false},
		{here, "evil.example:4567", "http://evil.example:4567", "same-origin", false, false},
		{far, "streams.example", "http://streams.example", "same-origin", false, false},
		{here, own4567, "http://localhost.evil.example", "", false, false},
		{here, own4567, "http://localhost@evil.example", "", false, false},
		{here, own4567, "http://10.0.0.1", "", false, false},
		{here, own4567, "null", "", false, false},
		{here, own4567, "file://", "", false, false},
		{here, own4567, "http://%", "", false, false},
		{here, own4567, "localhost", "", false, false},
		{here, own4567, "moz-extension://localhost", "", false, false},

		{here, own4567, "https://app.example.com", "cross-site", true, true},
		{here, "app.example.com", "https://app.example.com", "same-origin", true, true},
		{here, "app.example.com:4567", "", "", true, true}, // a front of that name
		{here, own4567, "https://app.example.com:8443", "", false, false},
		{here, own4567, "http://app.example.com", "", false, false},
		{here, own4567, "http://10.0.0.7:3000", "", true, true},
		{here, own4567, "http://10.0.0.7", "", false, false},
		{here, own4567, "http://[2001:db8::1]", "", true, true},
	} {
		headers := map[string]string{}
		if c.origin != "" {
			headers["Origin"] = c.origin
		}
		if c.site != "" {
			headers["Sec-Fetch-Site"] = c.site
		}
		r := request(t, c.local, c.host, headers)
		if err := guard.CheckCall(r); (err == nil) != c.call {
			t.Errorf("a call %+v: %v", c, err)
		}
		if err := guard.CheckPage(r); (err == nil) != c.page {
			t.Errorf("a page %+v: %v", c, err)
		}
	}
}

// A second Origin does not hide behind the first.
func TestTwoOrigins(t *testing.T) {
	r := request(t, "127.0.0.1", "localhost", map[string]string{"Origin": "http://localhost"})
	r.Header.Add("Origin", "http://evil.example")
	if new(Guard).CheckCall(r) == nil {
		t.Error("allowed")
	}
}

func TestNewRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"app.example.com":           "its scheme is neither http nor https",
		"*":                         "its scheme is neither",
		"https://*.example.com":     "it has no host name",
		"https://":                  "it has no host name",
		"https://app.example/path":  "it has more than that",
		"https://me@app.example":    "it has more than that",
		"http://%":                  "it is no URL",
		"https://app.example:0":     "its port is 0: want 1 to 65535",
		"https://app.example:0443":  "its port is 0443",
		"https://app.example:65536": "its port is 65536",
		"https://bücher.example":    "its host name has letters beyond ASCII: want it as browsers",
	} {
		_, err := New([]string{text})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
