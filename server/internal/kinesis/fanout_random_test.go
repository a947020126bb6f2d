package kinesis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
)

// fanOutStory is a random life of a stream that one consumer reads by fan-out: it walks the
// shards, parents before children, loses its connections now and then and goes on from the
// last event's number.
type fanOutStory struct {
	n      *node
	rng    *rand.Rand
	app    string
	serial int
	keys   map[string][]string // the stored records, by partition key, in order
	seen   map[string][]string // the received ones
	count  int                 // of those that are still to come
	shards map[string]*walked
}

// walked is a shard on the walk.
type walked struct {
	parents    []string
	position   m
	events     *subscriber // nil: not connected
	subscribed time.Time
	done       bool
}

// Over random puts, splits, merges, broken connections and restarts the consumer sees every
// record exactly once, those of a key in their order.
func TestFanOutSeesEverythingOnce(t *testing.T) {
	for seed := range uint64(4 * soak()) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(n *node) {
				n.create("orders", 2)
				s := &fanOutStory{
					n: n, rng: rand.New(rand.NewPCG(seed, 5)), app: n.register("orders", "app"),
					keys: map[string][]string{}, seen: map[string][]string{},
					shards: map[string]*walked{},
				}
				for range 300 {
					s.step()
				}
				for s.count > 0 {
					s.read()
				}
				for _, w := range s.shards {
					if w.events != nil {
						w.events.events.Close()
					}
				}
				s.compare()
				t.Logf("%d records in %d shards", s.serial, len(s.n.list("orders")))
				s.n.stop()
			})
		})
	}
	t.Logf("soak: %d seeds, %d operations", 4*soak(), 4*soak()*300)
}

func (s *fanOutStory) step() {
	switch r := s.rng.IntN(100); {
	case r < 40:
		s.put()
	case r < 50:
		s.reshard()
	case r < 60:
		s.cut()
	default:
		s.read()
	}
}

func (s *fanOutStory) put() {
	var records []m
	for range 1 + s.rng.IntN(20) {
		key := fmt.Sprint("k", s.rng.IntN(16))
		s.serial++
		data := fmt.Sprintf("%s/%d", key, s.serial)
		s.keys[key] = append(s.keys[key], data)
		records = append(records, m{"PartitionKey": key, "Data": []byte(data)})
	}
	s.count += len(records)
	s.n.call("PutRecords", m{"StreamName": "orders", "Records": records})
}

// reshard splits a shard, or merges two, if that is possible.
func (s *fanOutStory) reshard() {
	open := s.n.list("orders", "ShardFilter", m{"Type": "AT_LATEST"})
	slices.SortFunc(open, func(a, b listed) int {
		x, _ := keyspace.Parse(a.HashKeyRange.StartingHashKey)
		y, _ := keyspace.Parse(b.HashKeyRange.StartingHashKey)
		return x.Compare(y)
	})
	i := s.rng.IntN(len(open))
	if i > 0 && s.rng.IntN(6) < len(open) {
		s.n.call("MergeShards", m{
			"StreamName": "orders", "ShardToMerge": open[i-1].ShardId,
			"AdjacentShardToMerge": open[i].ShardId,
		})
		return
	}
	start, _ := keyspace.Parse(open[i].HashKeyRange.StartingHashKey)
	end, _ := keyspace.Parse(open[i].HashKeyRange.EndingHashKey)
	s.n.call("SplitShard", m{
		"StreamName": "orders", "ShardToSplit": open[i].ShardId,
		"NewStartingHashKey": keyspace.Range{Start: start, End: end}.Middle().String(),
	})
}

// cut breaks a connection off, lets all of them end by age, or starts the server again.
func (s *fanOutStory) cut() {
	switch s.rng.IntN(8) {
	case 0:
		time.Sleep(subscriptionLife)
		return
	case 1:
		for _, w := range s.shards {
			if w.events != nil {
				w.events.events.Close()
				w.events = nil
			}
		}
		s.n.stop()
		s.n = startNode(s.n.t, s.n.fs)
		return
	}
	for _, w := range s.shards {
		if w.events != nil {
			w.events.events.Close()
			w.events = nil
			return
		}
	}
}

// ready returns the shards that may be read: their parents have been read to the end.
func (s *fanOutStory) ready() (ids []string) {
	for _, sh := range s.n.list("orders") {
		w := s.shards[sh.ShardId]
		if w == nil {
			w = &walked{position: fromStart}
			for _, parent := range []string{sh.ParentShardId, sh.AdjacentParentShardId} {
				if parent != "" {
					w.parents = append(w.parents, parent)
				}
			}
			s.shards[sh.ShardId] = w
		}
		waits := slices.ContainsFunc(w.parents, func(id string) bool { return !s.shards[id].done })
		if !w.done && !waits {
			ids = append(ids, sh.ShardId)
		}
	}
	return ids
}

// read takes an event of a shard; it connects first if necessary.
func (s *fanOutStory) read() {
	ids := s.ready()
	id := ids[s.rng.IntN(len(ids))]
	w := s.shards[id]
	if w.events == nil {
		time.Sleep(time.Until(w.subscribed.Add(5 * time.Second)))
		w.events, w.subscribed = s.n.subscribe(s.app, id, w.position), time.Now()
	}
	e, err := w.events.try(s.n.ctx)
	if err != nil { // its age
		w.events.ended()
		w.events = nil
		return
	}
	for _, r := range e.Records {
		s.seen[r.PartitionKey] = append(s.seen[r.PartitionKey], string(r.Data))
	}
	s.count -= len(e.Records)
	if len(e.ChildShards) > 0 {
		w.events.ended()
		w.events, w.done = nil, true
		return
	}
	w.position = after(e.number())
	if s.rng.IntN(2) == 0 {
		w.position = exactly(e.number())
	}
}

func (s *fanOutStory) compare() {
	s.n.t.Helper()
	for key, want := range s.keys {
		if got := s.seen[key]; !slices.Equal(got, want) {
			s.n.t.Errorf("of %s there came\n%s\nwant\n%s", key, strings.Join(got, " "),
				strings.Join(want, " "))
		}
	}
}
