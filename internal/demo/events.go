package demo

import (
	"fmt"
	"iter"
	"math/rand/v2"
)

// event is a line of input: its identity, its key, and its bytes.
type event struct {
	id, key string
	data    []byte
}

// Repositories that get hotShare of all events each, and about how many events the others get.
const (
	hotKeys       = 5
	hotShare      = 0.015
	eventsPerRepo = 10
)

// repositoryEvents makes n events of a code host from a seed: a repository is created, pushed
// to, and sometimes destroyed, in that order; a few repositories are hot. The same seed gives
// the same events.
func repositoryEvents(seed uint64, n int) iter.Seq[event] {
	return func(yield func(event) bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		pushes := make([]int, hotKeys+max(1, n/eventsPerRepo)) // 0: not there
		for i := range n {
			at := hotKeys + random.IntN(len(pushes)-hotKeys)
			if x := random.Float64(); x < hotKeys*hotShare {
				at = int(x / hotShare)
			}
			kind := "push"
			switch {
			case pushes[at] == 0:
				kind = "create"
			case at >= hotKeys && random.IntN(12) == 0:
				kind = "destroy"
			}
			e := event{
				id:  fmt.Sprintf("%08d", i+1),
				key: fmt.Sprintf("%s/%s-%d", owners[at%len(owners)], rivers[at%len(rivers)], at),
			}
			e.data = fmt.Appendf(nil, `{"id":%q,"type":%q,"repo":%q,"n":%d,"actor":%d,`+
				`"ref":"refs/heads/main","head":"%016x%016x"}`, e.id, kind, e.key, pushes[at],
				random.IntN(1_000_000), random.Uint64(), random.Uint64())
			pushes[at]++
			if kind == "destroy" {
				pushes[at] = 0
			}
			if !yield(e) {
				return
			}
		}
	}
}

var (
	owners = []string{"alpine", "delta", "estuary", "fen", "glacier", "harbour", "inlet"}
	rivers = []string{
		"aare", "danube", "ebro", "elbe", "loire", "meuse", "oder", "po", "rhine",
		"rhone", "seine", "tagus", "thames", "tiber", "vistula",
	}
)
