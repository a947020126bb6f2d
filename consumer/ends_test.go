package consumer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
)

func ids(names string) []runnel.ShardID {
	var list []runnel.ShardID
	for _, name := range strings.Fields(names) {
		list = append(list, runnel.ShardID(name))
	}
	return list
}

// begun returns the states that a child gets, and the ends that remain afterwards.
func begun(e *ends, child, parents string) string {
	states := e.begin(runnel.ShardID(child), ids(parents))
	kept, bytes := []string{}, 0
	for _, end := range e.kept {
		kept = append(kept, string(end.shard))
		bytes += len(end.state)
	}
	if bytes != e.bytes {
		return fmt.Sprintf("%d bytes are counted as %d", bytes, e.bytes)
	}
	return fmt.Sprintf("%s, kept %s", states, kept)
}

// An end remains until the last child has begun. A child gets the ends of all its parents or none.
func TestEndsAreKeptForTheChildren(t *testing.T) {
	var e ends
	e.leave("a", []byte("A"), ids("c d"))
	e.leave("b", []byte("BB"), ids("m"))
	e.leave("x", []byte("X"), ids("m"))
	e.leave("none", []byte("N"), nil)
	e.leave("a", []byte("AA"), ids("c d")) // once more, after a failure
	for _, step := range []struct{ child, parents, want string }{
		{"c", "a", "[AA], kept [b x a]"},
		{"c", "a", "[AA], kept [b x a]"}, // once more
		{"unknown", "", "[], kept [b x a]"},
		{"other", "a", "[AA], kept [b x a]"},
		{"o", "b elsewhere", "[], kept [b x a]"},
		{"m", "b x", "[BB X], kept [a]"},
		{"m", "b x", "[], kept [a]"},
		{"d", "a elsewhere", "[], kept []"},
		{"d", "a", "[], kept []"},
	} {
		if got := begun(&e, step.child, step.parents); got != step.want {
			t.Errorf("%s of %q: %s, want %s", step.child, step.parents, got, step.want)
		}
	}
}

// Unused ends do not grow without limit: the newest are kept, by number and by bytes.
func TestEndsAreBounded(t *testing.T) {
	var e ends
	name := func(i int) runnel.ShardID { return runnel.ShardID(fmt.Sprint(i)) }
	for i := range maxEnds + 10 {
		e.leave(name(i), []byte("state"), ids("child"))
	}
	if n := len(e.kept); n != maxEnds || e.kept[0].shard != name(10) || e.bytes != 5*n {
		t.Errorf("%d kept, from %s on, %d bytes", n, e.kept[0].shard, e.bytes)
	}
	large := make([]byte, maxEndBytes/3)
	for i := range 5 {
		e.leave(name(1000+i), large, ids("child"))
	}
	if n := len(e.kept); n != 3 || e.kept[0].shard != name(1002) || e.bytes != 3*len(large) {
		t.Errorf("%d kept, from %s on, %d bytes", n, e.kept[0].shard, e.bytes)
	}
}
