package lease_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// A table is "key checkpoint", then "<parent" and ">child". The second text is the completed ones.
func TestCompleted(t *testing.T) {
	for table, want := range map[string]string{
		"":                                       "",
		"a end":                                  "",  // its children are not known
		"a end >b >c":                            "",  // they have no leases
		"a end >b >c; b 7 <a; c 7 <a":            "a", // both have begun
		"a end >b >c; b 7 <a; c start <a":        "",  // one has not
		"a end >b >c; b 7 <a; c end <a":          "a",
		"a end >c; b 7 >c; c start <a <b":        "", // a merge
		"a end >c; b end >c; c 7 <a <b":          "a b",
		"a end >b; b end <a >c; c 7 <b":          "a", // b waits until a is gone
		"b end <a >c; c 7 <b":                    "b",
		"a 7 >b; b start <a":                     "", // it has not ended
		"a end >b; b end <a >c; c start <b":      "a",
		"a end >b >c; b 7 <a; c end <a >d":       "a",
		"x end >y; y start <x; a end >b; b 7 <a": "a",
	} {
		var leases []lease.Lease
		for row := range strings.SplitSeq(table, ";") {
			words := strings.Fields(row)
			if len(words) == 0 {
				continue
			}
			l := lease.Lease{Key: runnel.ShardID(words[0])}
			switch words[1] {
			case "end":
				l.Checkpoint = runnel.End()
			case "start":
				l.Checkpoint.Sequence = runnel.TrimHorizon
			default:
				l.Checkpoint.Sequence = runnel.SequenceNumber(words[1])
			}
			for _, word := range words[2:] {
				if id := runnel.ShardID(word[1:]); word[0] == '<' {
					l.Parents = append(l.Parents, id)
				} else {
					l.Children = append(l.Children, id)
				}
			}
			leases = append(leases, l)
		}
		var got []string
		for _, l := range lease.Completed(leases) {
			got = append(got, string(l.Key))
		}
		if fmt.Sprint(got) != fmt.Sprint(strings.Fields(want)) {
			t.Errorf("%q: %v, want %q", table, got, want)
		}
	}
}
