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
			if status != want || status == http.StatusBadRequest &&
				!strings.Contains(text, "ThrottlingException") {
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
