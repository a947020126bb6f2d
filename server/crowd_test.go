package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCrowd: over HTTP/2 the server refuses calls beyond mostStreams before it executes them, and
// drops those beyond as many that are being refused. Those over HTTP/1.1 go on.
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
		for _, others := range []struct {
			calls, refused int64
			want           int
		}{
			{mostStreams - 1, 0, http.StatusOK},
			{mostStreams - 1, mostStreams, http.StatusOK},
			{mostStreams, 0, http.StatusBadRequest},
			{mostStreams, mostStreams - 1, http.StatusBadRequest},
			{mostStreams, mostStreams, 0},
		} {
			s.alone(t)
			s.crowd.calls.Store(others.calls)
			s.crowd.refused.Store(others.refused)
			want := others.want
			if protocol < 2 {
				want = http.StatusOK
			}
			_, status, text := call()
			refused := strings.Contains(text, "ThrottlingException") &&
				strings.Contains(text, "more than 2048 calls over HTTP/2")
			if status != want || status == http.StatusBadRequest && !refused {
				t.Errorf("beside %+v: %d %s", others, status, text)
			}
			s.crowd.calls.Add(-others.calls)
			s.crowd.refused.Add(-others.refused)
		}
		s.alone(t)
		s.wantAnswer(t)
	})
}

// alone waits until no call over HTTP/2 is under way.
func (s *streaming) alone(t *testing.T) {
	t.Helper()
	for range 1000 {
		if s.crowd.calls.Load() == 0 && s.crowd.refused.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d calls and %d refused ones are left", s.crowd.calls.Load(), s.crowd.refused.Load())
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

// TestCrowdOfRefusedCalls: a call that is refused by its head, while the server still drops its body,
// takes no place of the others. Among many calls one without a key is refused by its head, too.
func TestCrowdOfRefusedCalls(t *testing.T) {
	const keys = "[a]\naws_access_key_id = AKIDONE\naws_secret_access_key = secret\n"
	for _, c := range []struct {
		protocol, length string
		cfg              Config
		others           int64
	}{
		{"h2c", "99999999", Config{}, mostStreams - 1},
		{"https h2", "99999999", Config{}, mostStreams - 1},
		{"h2c", "99", Config{Credentials: keys}, many},
		{"https h2", "99", Config{Credentials: keys}, many},
	} {
		t.Run(c.protocol+" "+c.length, func(t *testing.T) {
			s := serveStreams(t, c.cfg, c.protocol)
			f := s.frames(t)
			go func() { _, _ = io.Copy(io.Discard, f) }()
			s.crowd.calls.Store(c.others)
			f.send(headersFrame, endHeaders, 1, headers(":method", "POST", ":path", "/",
				":scheme", "http", ":authority", "localhost",
				"content-type", "application/x-amz-json-1.1", "content-length", c.length,
				"x-amz-target", "Kinesis_20131202.ListStreams"))
			f.send(dataFrame, 0, 1, []byte("{")) // and no more
			for range 1000 {
				if s.crowd.refused.Load() == 1 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if c.cfg.Credentials == "" {
				s.wantAnswer(t)
			}
			if n := s.crowd.refused.Load(); n != 1 {
				t.Errorf("%d calls are being refused, want 1", n)
			}
			f.send(resetFrame, 0, 1, []byte{0, 0, 0, 8}) // CANCEL
			s.crowd.calls.Add(-c.others)
			s.alone(t)
		})
	}
}
