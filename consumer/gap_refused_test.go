package consumer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink"
)

// refusing makes a handler's shard stop at a gap. Each second refusal is a panic.
func (r *retained) refusing(c *consumer.Config) {
	r.handling(c)
	c.OnGap = func(runnel.ShardID, sink.Gap) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refused++; r.refused%2 == 0 {
			panic("there is a gap")
		}
		return errors.New("there is a gap")
	}
}

// A shard does not go beyond a gap that is refused, whether or not a record follows: at the tip, and
// at the end of a shard that was split, or that the stream no longer has.
func TestGapThatIsRefused(t *testing.T) {
	for name, later := range map[string]func(*retained){
		"at the tip":        func(r *retained) { <-time.After(25 * time.Hour) },
		"before a record":   func(r *retained) { <-time.After(25 * time.Hour); r.put(1) },
		"of a split shard":  func(r *retained) { <-time.After(25 * time.Hour); split(r.T, r.server, first) },
		"of a gone shard":   func(r *retained) { split(r.T, r.server, first); <-time.After(25 * time.Hour) },
		"of an early split": func(r *retained) { split(r.T, r.server, first); <-time.After(23 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			onRetained(t, func(r *retained) {
				r.put(2)
				r.mustRun(0, r.handling)
				r.put(1)
				<-time.After(2 * time.Hour)
				later(r)
				for range 2 {
					r.refused = 0
					r.mustRun(10*time.Minute, r.refusing)
					if r.refused < 2 || len(r.got) != 2 {
						t.Errorf("%d times refused, and the handler was given %q", r.refused, r.got)
					}
				}
				r.mustRun(0, r.handling)
				if name == "before a record" && !slices.Equal(r.got, []string{"0", "1", "gap", "3"}) {
					t.Errorf("the handler was given %q", r.got)
				}
			})
		})
	}
}

const first = "shardId-000000000000"
