package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestWire checks the requests, the answers, and the reuse of connections.
func TestWire(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == "last" {
			w.Header().Set("Connection", "close")
		}
		target := r.Header.Get("X-Amz-Target")
		_, _ = fmt.Fprintln(w, target, r.Header.Get("Content-Type"), string(body))
		if string(body) == "chunks" {
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	defer server.Close()
	w := newWire(server.URL)
	defer w.close()
	call := func(target, body, version string) (from string) {
		t.Helper()
		var answer bytes.Buffer
		if err := w.call(t.Context(), target, []byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		got, from, _ := strings.Cut(answer.String(), "\n")
		if want := target + " application/x-amz-json-" + version + " " + body; got != want {
			t.Errorf("the server got %q, want %q", got, want)
		}
		return from
	}
	first := call("Kinesis.A", "chunks", "1.1")
	if call("DynamoDB.B", "", "1.0") != first || call("Kinesis.A", "last", "1.1") != first {
		t.Error("a connection was not used again")
	}
	second := call("Kinesis.A", "body", "1.1")
	if second == first {
		t.Error("a connection was used that the server closes")
	}
	old := <-w.idle
	old.used = time.Now().Add(-stale)
	w.idle <- old
	if call("Kinesis.A", "body", "1.1") == second {
		t.Error("a connection was used that the server may have closed")
	}
}

// TestWireEnds checks that a call ends with its context.
func TestWireEnds(t *testing.T) {
	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	defer server.Close()
	w := newWire(server.URL)
	defer w.close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	go func() {
		<-begun
		cancel(why)
	}()
	if err := w.call(ctx, "Kinesis.A", nil, nil); !errors.Is(err, why) {
		t.Errorf("the error is %v, want %v", err, why)
	}
	if len(w.idle) != 0 {
		t.Error("a connection is kept whose call was broken off")
	}
}
