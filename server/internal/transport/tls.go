package transport

import (
	"crypto/tls"
	"net"
	"net/http"
)

// tlsSettings returns Config.TLS as listeners use it: HTTP/2 and HTTP/1.1 are offered, in this
// order. nil stays nil.
func tlsSettings(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	return config
}

// refusePlain answers unencrypted requests to an address that other machines reach, with 400. It
// looks at nothing in such a request; its client has shown it to the network already, and must
// learn of it.
func refusePlain(next http.Handler, date func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !cameByLoopback(r) {
			SetDate(w, date)
			w.Header().Set("Connection", "close")
			http.Error(w, "this port takes encrypted connections only: use https://",
				http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// cameByLoopback reports whether the request's connection was made to a loopback address.
func cameByLoopback(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}
