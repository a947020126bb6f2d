package kinesis

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

// Stream states, as the API names them.
const (
	statusCreating = "CREATING"
	statusUpdating = "UPDATING"
	statusDeleting = "DELETING"
	statusActive   = "ACTIVE"
)

// Capacity modes, as the API names them.
const (
	modeProvisioned = "PROVISIONED"
	modeOnDemand    = "ON_DEMAND"
)

const hour = int64(3_600_000) // ms

// stream is a stream of the catalogue. A published value never changes, so that readers use it
// without a lock; a change replaces it by a changed copy.
type stream struct {
	World     wire.World `json:"world"`
	Name      string     `json:"name"`
	Created   int64      `json:"created"`   // ms since 1970; differs between streams of one name
	Retention int64      `json:"retention"` // hours
	settings
	// Phase is a state that passes at Until (ms since 1970): CREATING and UPDATING into
	// ACTIVE, DELETING into nothing. Empty: ACTIVE.
	Phase string `json:"phase,omitempty"`
	Until int64  `json:"until,omitempty"`
	// Pending are the steps of a requested reshard. The stream is UPDATING until they are carried
	// out, at Until or soon after. Nothing else changes its open shards meanwhile.
	Pending []scaleStep `json:"pending,omitempty"`
	// Shards are all shards with data that has not expired, by index, closed ones included.
	Shards []*shard `json:"shards"`
	Next   uint32   `json:"next"` // index of the next shard
	// Consumers are the registered ones, by name, and for a while also deleted ones.
	Consumers []*streamConsumer `json:"consumers,omitempty"`

	routes  []*shard // the open shards by hash key: they tile the key space
	traffic *traffic // bytes and records in and out since the start; all copies share it
	version *version // of this value; nil: it is durable
}

// version says whether the change that made a stream's value is durable. Until then readers see the
// value before.
type version struct {
	durable atomic.Bool
	before  atomic.Pointer[stream] // nil: there was none, or it is no longer needed
}

// visible returns the newest durable value of the stream; nil if there is none.
func (st *stream) visible() *stream {
	for st != nil && st.version != nil && !st.version.durable.Load() {
		st = st.version.before.Load()
	}
	return st
}

// streamKey is the key of a stream in the catalogue.
type streamKey struct {
	world wire.World
	name  string
}

func (st *stream) key() streamKey { return streamKey{st.World, st.Name} }

// gone reports whether the stream's deletion has come to its end.
func (st *stream) gone(now int64) bool { return st.Phase == statusDeleting && now >= st.Until }

// status returns the StreamStatus at a time.
func (st *stream) status(now int64) string {
	if st.Phase == statusDeleting || (st.Phase != "" && now < st.Until) {
		return st.Phase
	}
	if len(st.Pending) > 0 {
		return statusUpdating
	}
	return statusActive
}

// retention returns the retention period in ms.
func (st *stream) retention() int64 { return st.Retention * hour }

// horizon returns the earliest arrival of a record that has not expired.
func (st *stream) horizon(now int64) int64 { return max(st.Created, now-st.retention()) }

// listed returns the visible shards at a time: none before the stream is there, and no closed ones
// with expired data.
func (st *stream) listed(now int64) []*shard {
	if st.status(now) == statusCreating {
		return nil
	}
	shards := make([]*shard, 0, len(st.Shards))
	for _, sh := range st.Shards {
		if !sh.expired(now, st.retention()) {
			shards = append(shards, sh)
		}
	}
	return shards
}

// shard returns the visible shard with the index, or nil.
func (st *stream) shard(index uint32, now int64) *shard {
	at := st.position(index)
	if at < 0 || st.status(now) == statusCreating || st.Shards[at].expired(now, st.retention()) {
		return nil
	}
	return st.Shards[at]
}

// position returns the index into Shards of the shard with the index, or -1.
func (st *stream) position(index uint32) int {
	at, found := slices.BinarySearchFunc(st.Shards, index, func(sh *shard, index uint32) int {
		return cmp.Compare(sh.Index, index)
	})
	if !found {
		return -1
	}
	return at
}

// children returns the shards that a shard was split or merged into.
func (st *stream) children(parent uint32) []*shard {
	var children []*shard
	for _, sh := range st.Shards {
		if slices.Contains(sh.Parents, parent) {
			children = append(children, sh)
		}
	}
	return children
}

// route returns the open shard that owns a hash key.
func (st *stream) route(k keyspace.Key) *shard {
	after := sort.Search(len(st.routes), func(i int) bool {
		return k.Less(st.routes[i].Range.Start)
	})
	return st.routes[after-1]
}

// index derives routes from Shards and checks that they tile the key space.
func (st *stream) index() error {
	if st.traffic == nil {
		st.traffic = new(traffic)
	}
	st.routes = nil
	var ranges []keyspace.Range
	for _, sh := range st.Shards {
		if sh.open() {
			st.routes = append(st.routes, sh)
			ranges = append(ranges, sh.Range)
		}
	}
	if err := keyspace.Tiles(ranges); err != nil {
		return fmt.Errorf("%w: stream %s: its open shards: %w", errChange, st.Name, err)
	}
	slices.SortFunc(st.routes, func(a, b *shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	return nil
}

// copy returns a copy that can be changed before it is published. The shards are shared.
func (st *stream) copy() *stream {
	other := *st
	other.version = nil
	other.Shards = slices.Clone(st.Shards)
	return &other
}

// arn returns the stream's Amazon resource name.
func (st *stream) arn() string { return arnPrefix(st.World) + st.Name }

// arnPrefix returns the common prefix of the ARNs of a world's streams. The partition is that of
// the region, as in AWS's list of partitions.
func arnPrefix(world wire.World) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(world.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(world.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return "arn:" + partition + ":kinesis:" + world.Region + ":" + world.Account + ":stream/"
}
