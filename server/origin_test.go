package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A request that is read after a pause, and before any tick has seen it, is not served: the
// connection breaks off.
func TestRequestOfBeforeAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		conn := &earlyConn{Conn: near}
		serve := func() (thrown any) {
			defer func() { thrown = recover() }()
			r := httptest.NewRequest(http.MethodGet, "/health", nil)
			s.serveHTTP(httptest.NewRecorder(),
				r.WithContext(context.WithValue(r.Context(), connKey{}, conn)))
			return nil
		}
		if thrown := serve(); thrown != nil {
			t.Errorf("before the pause: %v", thrown)
		}
		time.Sleep(time.Minute) // no tick comes: as if the process had not run
		err, _ = serve().(error)
		if !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("after the pause: %v", err)
		}
	})
}
