package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/server/internal/pause"
)

// A request that is read after a pause, and before any tick has seen it, is not to be served.
func TestRequestOfBeforeAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := pause.New()
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		r := httptest.NewRequest(http.MethodGet, "/health", nil)
		r = r.WithContext(context.WithValue(r.Context(), connKey{}, &earlyConn{Conn: near}))
		request, err := Begin(r, pauses)
		if err != nil {
			t.Fatalf("before the pause: %v", err)
		}
		request.End()
		time.Sleep(time.Minute) // no tick comes: as if the process had not run
		if _, err := Begin(r, pauses); err == nil {
			t.Error("after the pause there is no error")
		}
	})
}

// The age of a request counts from its own first byte, also behind others on its connection: calls,
// and pages of which the handler reads no body.
func TestAgesOnOneConnection(t *testing.T) {
	for name, change := range map[string]func(*transport){
		"shortcut": func(*transport) {}, "net/http": withoutShortcut,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pauses, ages := pause.New(), make(chan time.Duration, 1)
				pauses.Start(func(time.Duration) {})
				defer pauses.Stop()
				_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					request, err := Begin(r, pauses)
					if err != nil {
						t.Error(err)
						return
					}
					defer request.End()
					ages <- bootclock.Since(request.Began)
					if r.Method == http.MethodPost {
						_, _ = io.ReadAll(r.Body)
						request.BodyRead()
					}
					w.WriteHeader(http.StatusOK)
				}), change)
				conn := dial()
				for _, text := range []string{
					plainCall("", "x"), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
					"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", plainCall("", "x"), plainCall("", "x"),
				} {
					answerTo(t, conn, text)
					if age := <-ages; age > time.Second {
						t.Errorf("%.20q is %v old", text, age)
					}
					time.Sleep(time.Minute) // idle
				}
			})
		})
	}
}
