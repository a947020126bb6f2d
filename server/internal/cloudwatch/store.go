package cloudwatch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The bounds of the store. A KCL worker has some ten series, and ten more for each shard; the KPL
// has some twenty for each shard.
const (
	defaultSeries = 10_000
	maxNames      = 16 << 20 // bytes of all series' names together
)

// identity identifies a series.
type identity struct {
	world      wire.World
	namespace  string
	metric     string
	dimensions string // as "Operation=ProcessTask,ShardId=shardId-000000000000", by name
	unit       string
}

func (id identity) size() int {
	return len(id.world.Account) + len(id.world.Region) + len(id.namespace) + len(id.metric) +
		len(id.dimensions) + len(id.unit)
}

// series aggregates one metric series.
type series struct {
	identity
	count, sum float64 // of all its data
	newest     summary // the datum with the latest timestamp
	at         time.Time
}

// store holds the series, bounded in number and in the length of their names: a new series replaces
// the least recently updated one. Safe for concurrent use.
type store struct {
	mu struct {
		sync.Mutex
		series  *simplelru.LRU[identity, *series]
		names   int // bytes
		dropped uint64
		data    uint64
	}
}

func newStore(limit int) *store {
	s := &store{}
	dropped := func(id identity, _ *series) {
		s.mu.names -= id.size()
		s.mu.dropped++
	}
	var err error
	if s.mu.series, err = simplelru.NewLRU(limit, dropped); err != nil {
		panic(err) // of a limit that is not positive
	}
	return s
}

// put adds the data of a call.
func (s *store) put(world wire.World, in *input, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range in.data() {
		id := identity{
			world: world, namespace: strings.Clone(*in.Namespace),
			metric: strings.Clone(*d.MetricName), dimensions: joined(d.Dimensions), unit: "None",
		}
		if d.Unit != nil {
			id.unit = strings.Clone(*d.Unit) // a form's strings are parts of the whole form
		}
		at := now
		if d.Timestamp != nil {
			at = d.Timestamp.Time
		}
		s.addLocked(id, d.summary(), at)
	}
}

func (s *store) addLocked(id identity, sum summary, at time.Time) {
	s.mu.data++
	kept, known := s.mu.series.Get(id)
	if !known {
		kept = &series{identity: id}
		s.mu.series.Add(id, kept)
		s.mu.names += id.size()
		for s.mu.names > maxNames && s.mu.series.Len() > 1 {
			s.mu.series.RemoveOldest()
		}
	}
	kept.count += sum.count
	kept.sum += sum.sum
	if !at.Before(kept.at) {
		kept.newest, kept.at = sum, at
	}
}

// counts holds the store's own metrics.
type counts struct {
	series, names int
	data, dropped uint64
}

// snapshot returns copies of the series, the least recently updated first.
func (s *store) snapshot() ([]series, counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]series, 0, s.mu.series.Len())
	for _, one := range s.mu.series.Values() {
		all = append(all, *one)
	}
	return all, counts{s.mu.series.Len(), s.mu.names, s.mu.data, s.mu.dropped}
}

// joined writes dimensions in the order of their names, since AWS ignores their order. It quotes
// texts with a comma, an equals sign, a quote or a backslash, so that different dimensions give
// different texts.
func joined(dimensions []dimension) string {
	sorted := slices.SortedFunc(slices.Values(dimensions), func(a, b dimension) int {
		return cmp.Compare(*a.Name, *b.Name)
	})
	var b strings.Builder
	for i, d := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(*d.Name))
		b.WriteByte('=')
		b.WriteString(quoted(*d.Value))
	}
	return b.String()
}

func quoted(text string) string {
	if strings.ContainsAny(text, `,="\`) {
		return strconv.Quote(text)
	}
	return text
}
