package wire

import "net/http"

// allowOrigin answers to a browser's Origin header as AWS does (kinesalite, test/connection.js; the
// exposed headers: index.js). It reports whether the request is a preflight. The answer to a
// preflight is the headers alone; nothing else of it is checked, since browsers send preflights
// without a signature. The caller has refused the pages that may not call: see package origin.
func allowOrigin(header http.Header, r *http.Request) (preflight bool) {
	if r.Header.Get("Origin") == "" {
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
