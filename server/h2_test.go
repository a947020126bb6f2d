package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

// TestLongBodies: over every protocol, the longest bodies are accepted, many at a time, and longer
// ones are refused.
func TestLongBodies(t *testing.T) {
	overEachProtocol(t, Config{MaxBodies: 2 * wire.MaxBody}, func(t *testing.T, s *streaming) {
		longest := strings.Repeat(" ", wire.MaxBody)
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { s.wantAnswerTo(t, "Length", longest, fmt.Sprint(wire.MaxBody)) })
		}
		calls.Wait()
		answer, err := s.post(t.Context(), "Length", longest+" ")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, want 413", answer.Status)
		}
		s.wantAnswer(t)
	})
}

// TestPanic ends one call and nothing else.
func TestPanic(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		answer, err := s.post(t.Context(), "Panic", "{}")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusInternalServerError {
			t.Errorf("%s, want 500", answer.Status)
		}
		s.wantAnswer(t)
	})
}

// TestLostAnswers: on HTTP/2 only the call's own stream is reset.
func TestLostAnswers(t *testing.T) {
	const faults = "ListShards:lose-answer GetRecords:lose-request"
	overEachProtocol(t, Config{Faults: faults}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		for _, operation := range []string{"ListShards", "GetRecords"} {
			if answer, err := s.post(t.Context(), operation, "{}"); err == nil {
				answer.Body.Close()
				t.Errorf("%s: an answer came: %s", operation, answer.Status)
			}
		}
		f.send(t, "{}")
		client.want(t, "E:{}")
		s.wantAnswer(t)
		close(f.events)
		client.wantEnd(t)
	})
}

// TestAcceptedCallsFinish: the shutdown waits for their answers.
func TestAcceptedCallsFinish(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		var call sync.WaitGroup
		call.Go(func() { s.wantAnswerTo(t, "Hold", "{}", "{}") })
		<-s.holds
		s.stop()
		for { // until the server takes no more connections
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				break
			}
			conn.Close()
		}
		close(s.let)
		call.Wait()
		s.client.CloseIdleConnections()
		if err := s.served(); err != nil {
			t.Error(err)
		}
	})
}

// TestHealthOverEachProtocol: health is open to every protocol, and has no body for HEAD.
func TestHealthOverEachProtocol(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		for method, want := range map[string]string{http.MethodGet: "ok\n", http.MethodHead: ""} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/health", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK || string(body) != want {
				t.Errorf("%s: %s %q %v", method, answer.Status, body, err)
			}
		}
	})
}

// TestNoUpgrade: a request that asks for HTTP/2 by Upgrade has its answer over HTTP/1.1 (RFC 9110,
// 7.8), with the shortcut and without it.
func TestNoUpgrade(t *testing.T) {
	s := serveStreams(t, Config{}, "http/1.1")
	for _, target := range []string{"Kinesis_20131202.ListStreams", ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address,
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target,
			"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings",
			"Http2-Settings": "AAMAAABkAAQAAP__",
		} {
			request.Header.Set(name, value)
		}
		answer, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.ProtoMajor != 1 || answer.StatusCode == http.StatusSwitchingProtocols ||
			answer.Header.Get("X-Amzn-Requestid") == "" {
			t.Errorf("%q: %s %s %v", target, answer.Proto, answer.Status, answer.Header)
		}
	}
}
