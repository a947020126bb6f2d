package shardid_test

import (
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel/internal/shardid"
)

func TestOf(t *testing.T) {
	for _, n := range []uint32{0, 1, 9, 10, 12345, shardid.Max} {
		id := shardid.Of(n)
		if want := fmt.Sprintf("shardId-%012d", n); id != want {
			t.Errorf("the id of %d is %s, want %s", n, id, want)
		}
		if got, ok := shardid.Parse(id); got != n || !ok {
			t.Errorf("%s has the number %d, %v", id, got, ok)
		}
		if got := shardid.Short(id); got != fmt.Sprint(n) {
			t.Errorf("%s is %s for short", id, got)
		}
	}
}

func TestParse(t *testing.T) {
	for id, want := range map[string]uint32{"shardId-3": 3, "x-3": 3, "3": 3, "-0": 0} {
		if got, ok := shardid.Parse(id); got != want || !ok {
			t.Errorf("%q has the number %d, %v, want %d", id, got, ok, want)
		}
	}
	for _, id := range []string{"", "-", "shardId-", "shardId--1", "shardId-x", "2147483648"} {
		if got, ok := shardid.Parse(id); ok {
			t.Errorf("%q has the number %d", id, got)
		}
	}
}

func TestShortLeavesOtherTextsAlone(t *testing.T) {
	for _, text := range []string{"", "3", "total", "shard-0001"} {
		if got := shardid.Short(text); got != text {
			t.Errorf("%q is %q for short", text, got)
		}
	}
}
