package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCrowd: over HTTP/2 the server refuses calls beyond mostStreams before it executes them, and
// drops those beyond twice as many. Those over HTTP/1.1 go on.
func TestCrowd(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		call := func() (protocol, status int, text string) {
			answer, err := s.post(t.Context(), "ListStreams", "{}")
			if err != nil {
				return 0, 0, err.Error()
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			return answer.ProtoMajor, answer.StatusCode, string(body)
		}
		protocol, _, _ := call()
		for others, want := range map[int64]int{
			mostStreams - 1: http.StatusOK, mostStreams: http.StatusBadRequest,
			2*mostStreams - 1: http.StatusBadRequest, 2 * mostStreams: 0,
		} {
			s.alone(t)
			s.crowd.calls.Store(others)
			if protocol < 2 {
				want = http.StatusOK
			}
			_, status, text := call()
			refused := strings.Contains(text, "ThrottlingException") &&
				strings.Contains(text, "more than 2048 calls over HTTP/2")
			if status != want || status == http.StatusBadRequest && !refused {
				t.Errorf("beside %d calls: %d %s; want %d", others, status, text, want)
			}
			s.crowd.calls.Add(-others)
		}
		s.alone(t)
		s.wantAnswer(t)
	})
}

// alone waits until no call over HTTP/2 is under way.
func (s *streaming) alone(t *testing.T) {
	t.Helper()
	for range 1000 {
		if s.crowd.calls.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d calls are left", s.crowd.calls.Load())
}

// TestCrowdWithoutStreams: event streams leave room for calls.
func TestCrowdWithoutStreams(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		s.alone(t)
		close(f.events)
		client.wantEnd(t)
	})
}

// TestCrowdOfUnreadAnswers: among many calls, one whose client has no window for the answer keeps
// its place until the client resets it.
func TestCrowdOfUnreadAnswers(t *testing.T) {
	s := serveStreams(t, Config{}, "h2c")
	f := s.frames(t)
	go func() { _, _ = io.Copy(io.Discard, f) }()
	f.send(settingsFrame, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // streams begin without a window
	s.crowd.calls.Store(many)
	f.send(headersFrame, endHeaders, 1, headers(":method", "POST", ":path", "/", ":scheme", "http",
		":authority", "localhost", "content-type", "application/x-amz-json-1.1",
		"x-amz-target", "Kinesis_20131202.ListStreams"))
	f.send(dataFrame, endStream, 1, []byte("{}"))
	for range 1000 {
		if s.crowd.calls.Load() > many {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	if n := s.crowd.calls.Load(); n != many+1 {
		t.Errorf("%d calls under way, want %d", n, many+1)
	}
	f.send(resetFrame, 0, 1, []byte{0, 0, 0, 8}) // CANCEL
	for range 1000 {
		if s.crowd.calls.Load() == many {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d calls under way after the reset", s.crowd.calls.Load())
}
