package server

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

// A subscriber that has stopped reading holds all memory of answers. It is cut off within seconds
// once another subscriber's event waits, and that one gets its event.
func TestDeafSubscriberIsCutOff(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		deaf, reads := &largeFeed{feed: newFeed()}, &largeFeed{feed: newFeed()}
		client := s.subscribe(t, reads)
		client.want(t, "initial-response:{}")
		s.subscribe(t, deaf) // and never reads
		deaf.send(t, strings.Repeat("x", 30*largeEvent))
		for start := time.Now(); s.answers.Used() != largeEvent; time.Sleep(time.Millisecond) {
			if time.Since(start) > 10*time.Second {
				t.Fatalf("the event takes %d bytes", s.answers.Used())
			}
		}
		began := time.Now()
		reads.send(t, "{}")
		client.want(t, "E:{}")
		if passed := time.Since(began); passed > 10*time.Second {
			t.Errorf("the other event has waited for %v", passed)
		}
		wait(t, "Close", deaf.closed)
		s.wantAnswer(t)
	}, func(s *Server) { s.answers = budget.New(largeEvent*3/2, 0) })
}
