package wire

import (
	"net"
	"net/http"
	"net/url"
)

// allowOrigin answers to a browser's Origin header as AWS does (kinesalite, test/connection.js; the
// exposed headers: index.js). It reports whether the request is a preflight. The answer to a
// preflight is the headers alone; nothing else of it is checked, since browsers send preflights
// without a signature.
//
// At AWS any page may call, since it needs a key to do so. Without keys only pages of this machine
// may call: otherwise any page in its user's browser could read the server's data.
func allowOrigin(header http.Header, r *http.Request, signed bool) (preflight bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || (!signed && !isLocal(origin)) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodOptions {
		header.Set("Access-Control-Expose-Headers", "x-amzn-RequestId,x-amzn-ErrorType,"+
			"x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,Date")
		return false
	}
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
	if asked := r.Header.Get("Access-Control-Request-Method"); asked != "" {
		header.Set("Access-Control-Allow-Methods", asked)
	}
	header.Set("Access-Control-Max-Age", "172800")
	header.Set("Content-Length", "0")
	header.Del("X-Amz-Id-2")
	return true
}

// isLocal reports whether an origin, as "http://localhost:3000", is this machine.
func isLocal(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}
