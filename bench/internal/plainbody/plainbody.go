// Package plainbody mends the Go SDK's fault over HTTP/1.1 that docs/serve.md describes: calls of
// more than a few KB fail at times although the server has served them.
package plainbody

import (
	"io"
	"net/http"
)

// Transport sends requests by another transport, from which it hides all methods of their bodies
// but Read and Close. It is safe for concurrent use.
type Transport struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return t.Next.RoundTrip(r)
}
