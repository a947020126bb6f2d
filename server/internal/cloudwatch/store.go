package cloudwatch

import (
	"cmp"
	"container/list"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	max int
	mu  struct {
		sync.Mutex
		series  map[identity]*list.Element // of *series
		order   *list.List                 // the last one has the oldest last datum
		names   int
		dropped uint64
		data    uint64
	}
}

func newStore(limit int) *store {
	s := &store{max: limit}
	s.mu.series, s.mu.order = map[identity]*list.Element{}, list.New()
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
	element := s.mu.series[id]
	if element == nil {
		element = s.mu.order.PushFront(&series{identity: id})
		s.mu.series[id] = element
		s.mu.names += id.size()
		for len(s.mu.series) > s.max || s.mu.names > maxNames && len(s.mu.series) > 1 {
			s.dropLocked(s.mu.order.Back())
		}
	}
	s.mu.order.MoveToFront(element)
	kept := element.Value.(*series)
	kept.count += sum.count
	kept.sum += sum.sum
	if !at.Before(kept.at) {
		kept.newest, kept.at = sum, at
	}
}

func (s *store) dropLocked(element *list.Element) {
	id := element.Value.(*series).identity
	s.mu.order.Remove(element)
	delete(s.mu.series, id)
	s.mu.names -= id.size()
	s.mu.dropped++
}

// counts holds the store's own metrics.
type counts struct {
	series, names int
	data, dropped uint64
}

// snapshot returns copies of the series, unordered.
func (s *store) snapshot() ([]series, counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]series, 0, len(s.mu.series))
	for _, element := range s.mu.series {
		all = append(all, *element.Value.(*series))
	}
	return all, counts{len(s.mu.series), s.mu.names, s.mu.data, s.mu.dropped}
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
