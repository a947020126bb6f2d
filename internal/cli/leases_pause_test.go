package cli

import (
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// A shard that has ended is not paused, and its pause of before can be ended.
func TestResumeOfAnEndedShard(t *testing.T) {
	rows := func() []lease.Lease {
		return []lease.Lease{
			{Key: "open", Checkpoint: runnel.Position{Sequence: runnel.Latest}},
			{Key: "ended", Checkpoint: runnel.End()},
			{Key: "paused", Checkpoint: runnel.End(), Paused: true},
		}
	}
	for _, c := range []struct {
		pause bool
		all   int
	}{{pause: true, all: 1}, {pause: false, all: 2}} {
		if got, err := (&pauseFlags{all: true}).choose(rows(), nil, c.pause); err != nil ||
			len(got) != c.all {
			t.Errorf("pause %v: %+v, %v", c.pause, got, err)
		}
		for shard, ok := range map[string]bool{"open": true, "ended": false, "paused": !c.pause} {
			_, err := (&pauseFlags{}).choose(rows(), []string{shard}, c.pause)
			if (err == nil) != ok {
				t.Errorf("pause %v of %s: %v", c.pause, shard, err)
			}
		}
	}
}
