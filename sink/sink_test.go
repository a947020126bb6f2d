package sink_test

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// TestEqual shows that two commits are equal only if all their fields are.
func TestEqual(t *testing.T) {
	at := runnel.Position{Sequence: "7", Sub: 1}
	commit := sink.Committed{End: at, Token: "t", State: []byte("s")}
	for name, other := range map[string]sink.Committed{
		"another end":   {End: runnel.Position{Sequence: "7"}, Token: "t", State: []byte("s")},
		"another token": {End: at, Token: "u", State: []byte("s")},
		"another state": {End: at, Token: "t", State: []byte("r")},
		"no state":      {End: at, Token: "t"},
		"parents":       {End: at, Token: "t", State: []byte("s"), Parents: [][]byte{nil}},
	} {
		if commit.Equal(other) || other.Equal(commit) {
			t.Errorf("%s: equal", name)
		}
	}
	if !commit.Equal(sink.Committed{End: at, Token: "t", State: []byte("s")}) {
		t.Error("the same is not equal")
	}
	a, b := []byte("a"), []byte("b")
	start := sink.Committed{Parents: [][]byte{a, b, nil}}
	if start.Equal(sink.Committed{Parents: [][]byte{b, a, nil}}) {
		t.Error("the parents' order does not count")
	}
	if !start.Equal(sink.Committed{State: []byte{}, Parents: [][]byte{a, b, {}}}) {
		t.Error("an empty state is another than none")
	}
}

func TestMovedError(t *testing.T) {
	err := &sink.MovedError{To: sink.Committed{End: runnel.Position{Sequence: "49", Sub: 3}}}
	if !strings.Contains(err.Error(), "after 49/3") {
		t.Errorf("%q does not say where the shard goes on", err)
	}
}
