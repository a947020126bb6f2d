package allocate

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
)

// nodes counts the nodes of a tree, and whether each is needed.
func (n *node) nodes(t *rapid.T) int {
	if n == nil {
		return 0
	}
	if !n.taken && (n.left == nil || n.right == nil) {
		t.Fatalf("the node of [%s, %s] has no key and one half alone", n.cell.lo, n.cell.last)
	}
	return 1 + n.left.nodes(t) + n.right.nodes(t)
}

// Whatever was done, the nodes are fewer than two for a key, and the tree is that of an
// allocator that got the same keys in their order.
func TestNodesAreThoseOfTheKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Allocator
		var taken []keyspace.Key
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			switch rapid.IntRange(0, 3).Draw(t, "call") {
			case 0:
				key, _ := a.Allocate()
				taken = append(taken, key)
			case 1, 2:
				key := keyspace.Key{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
				if a.Add(key) == nil {
					taken = append(taken, key)
				}
			case 3:
				if len(taken) > 0 {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "i")
					if err := a.Release(taken[i]); err != nil {
						t.Fatal(err)
					}
					taken[i] = taken[len(taken)-1]
					taken = taken[:len(taken)-1]
				}
			}
			if n := a.root.nodes(t); n > max(0, 2*len(taken)-1) {
				t.Fatalf("%d nodes for %d keys", n, len(taken))
			}
		}
		var again Allocator
		for r := range a.All() {
			if err := again.AddRated(r); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(a, again) {
			t.Fatalf("the tree depends on the past:\n%s\n%s", a.Tree(), again.Tree())
		}
	})
}
