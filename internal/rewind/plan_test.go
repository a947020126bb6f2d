package rewind_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/rewind"
	"github.com/runnel-stream/runnel/lease"
)

// Shard 0 was split into 1 and 2, which were merged into 3. A goal or a lease is one word for each
// shard: start, a sequence number, end, or - for no lease.
func TestPlan(t *testing.T) {
	for _, c := range []struct{ name, goals, leases, want string }{
		{
			"from the oldest record on, only the first shard's lease is needed",
			"start start start start", "- - - -", "0 new start",
		},
		{
			"leases that are there are set, also those of children",
			"start start start start", "end end 7 -", "0 start, 1 start, 2 start",
		},
		{
			"a shard that is read next needs a lease if its parents are done",
			"end 5 start start", "end - - -", "1 new 5, 2 new start",
		},
		{
			"a child at a position needs one even beside a parent that is read",
			"5 7 start start", "5 - - -", "0 5, 1 new 7",
		},
		{
			"a lease ends with its children",
			"end end end 9", "4 end - 8", "0 end [1 2], 3 9",
		},
		{"what has ended stays ended", "end end end 9", "end - end 9", "3 9"},
		{"a shard that the stream lost keeps its lease", "gone end end 9", "4 end end 2", "3 9"},
	} {
		var got []string
		for _, change := range rewind.Plan(goalsOf(c.goals), leasesOf(c.leases)) {
			text := string(change.Shard.ID)
			if change.Create {
				text += " new"
			}
			text += " " + change.At.String()
			if len(change.Children) > 0 {
				text += fmt.Sprint(" ", change.Children)
			}
			if at := change.Lease.Processed(); change.Create && at != change.At {
				text += " created at " + at.String()
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

var parents = [][]runnel.ShardID{nil, {"0"}, {"0"}, {"1", "2"}}

func positionOf(word string) runnel.Position {
	switch word {
	case "start":
		return runnel.Start()
	case "end":
		return runnel.End()
	default:
		return runnel.Position{Sequence: runnel.SequenceNumber(word)}
	}
}

func goalsOf(words string) (goals []rewind.Goal) {
	for i, word := range strings.Fields(words) {
		if word != "gone" {
			goals = append(goals, rewind.Goal{
				Shard: runnel.Shard{ID: runnel.ShardID(fmt.Sprint(i)), Parents: parents[i]},
				At:    positionOf(word),
			})
		}
	}
	return goals
}

func leasesOf(words string) (leases []lease.Lease) {
	for i, word := range strings.Fields(words) {
		if word == "-" {
			continue
		}
		l := lease.Lease{Key: runnel.ShardID(fmt.Sprint(i)), Checkpoint: positionOf(word)}
		if word == "end" {
			l.Checkpoint.Sequence = runnel.ShardEnd
		}
		leases = append(leases, l)
	}
	return leases
}
