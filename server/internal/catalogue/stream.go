package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

// Stream states, as the API names them.
const (
	StatusCreating = "CREATING"
	StatusUpdating = "UPDATING"
	StatusDeleting = "DELETING"
	StatusActive   = "ACTIVE"
)

// Capacity modes, as the API names them.
const (
	ModeProvisioned = "PROVISIONED"
	ModeOnDemand    = "ON_DEMAND"
)

const hour = int64(3_600_000) // ms

// Stream is a stream of the catalogue. A published value never changes, so that readers use it
// without a lock; a change replaces it by a changed copy.
type Stream struct {
	World     wire.World `json:"world"`
	Name      string     `json:"name"`
	Created   int64      `json:"created"`   // ms since 1970; differs between streams of one name
	Retention int64      `json:"retention"` // hours
	Settings
	// Phase is a state that passes at Until (elapsed ms): CREATING and UPDATING into
	// ACTIVE, DELETING into nothing. Empty: ACTIVE.
	Phase string `json:"phase,omitempty"`
	Until int64  `json:"until,omitempty"`
	// Pending are the steps of a requested reshard. The stream is UPDATING until they are carried
	// out, at Until or soon after. Nothing else changes its open shards meanwhile.
	Pending []Step `json:"pending,omitempty"`
	// Shards are all shards with data that has not expired, by index, closed ones included.
	Shards []*Shard `json:"shards"`
	Next   uint32   `json:"next"` // index of the next shard
	// Consumers are the registered ones, by name, and for a while also deleted ones.
	Consumers []*Consumer `json:"consumers,omitempty"`

	routes  []*Shard // the open shards by hash key: they tile the key space
	traffic *Traffic // bytes and records in and out since the start; all copies share it
	version *version // of this value; nil: it is durable
}

// version says whether the change that made a stream's value is durable. Until then readers see the
// value before.
type version struct {
	durable atomic.Bool
	before  atomic.Pointer[Stream] // nil: there was none, or it is no longer needed
}

// Visible returns the newest durable value of the stream; nil if there is none.
func (st *Stream) Visible() *Stream {
	for st != nil && st.version != nil && !st.version.durable.Load() {
		st = st.version.before.Load()
	}
	return st
}

// Key is the key of a stream in the catalogue.
type Key struct {
	World wire.World
	Name  string
}

// Key returns the stream's key in the catalogue.
func (st *Stream) Key() Key { return Key{st.World, st.Name} }

// Gone reports whether the stream's deletion has come to its end.
func (st *Stream) Gone(now serverclock.Moment) bool {
	return st.Phase == StatusDeleting && now.Elapsed >= st.Until
}

// Status returns the StreamStatus at a time.
func (st *Stream) Status(now serverclock.Moment) string {
	if st.Phase == StatusDeleting || (st.Phase != "" && now.Elapsed < st.Until) {
		return st.Phase
	}
	if len(st.Pending) > 0 {
		return StatusUpdating
	}
	return StatusActive
}

// Serves reports whether the stream takes and gives records: it is neither CREATING nor DELETING.
func (st *Stream) Serves(now serverclock.Moment) bool {
	status := st.Status(now)
	return status != StatusCreating && status != StatusDeleting
}

// RetentionMs returns the retention period in ms.
func (st *Stream) RetentionMs() int64 { return st.Retention * hour }

// Horizon returns the earliest arrival of a record that has not expired.
func (st *Stream) Horizon(now serverclock.Moment) int64 {
	return max(st.Created, now.Horizon(st.RetentionMs()))
}

// Listed returns the visible shards at a time: none before the stream is there, and no closed ones
// with expired data.
func (st *Stream) Listed(now serverclock.Moment) []*Shard {
	if st.Status(now) == StatusCreating {
		return nil
	}
	horizon := now.Horizon(st.RetentionMs())
	shards := make([]*Shard, 0, len(st.Shards))
	for _, sh := range st.Shards {
		if !sh.expired(horizon) {
			shards = append(shards, sh)
		}
	}
	return shards
}

// Shard returns the visible shard with the index, or nil.
func (st *Stream) Shard(index uint32, now serverclock.Moment) *Shard {
	at := st.position(index)
	if at < 0 || st.Status(now) == StatusCreating ||
		st.Shards[at].expired(now.Horizon(st.RetentionMs())) {
		return nil
	}
	return st.Shards[at]
}

// position returns the index into Shards of the shard with the index, or -1.
func (st *Stream) position(index uint32) int {
	at, found := slices.BinarySearchFunc(st.Shards, index, func(sh *Shard, index uint32) int {
		return cmp.Compare(sh.Index, index)
	})
	if !found {
		return -1
	}
	return at
}

// Children returns the shards that a shard was split or merged into.
func (st *Stream) Children(parent uint32) []*Shard {
	var children []*Shard
	for _, sh := range st.Shards {
		if slices.Contains(sh.Parents, parent) {
			children = append(children, sh)
		}
	}
	return children
}

// Route returns the open shard that owns a hash key.
func (st *Stream) Route(k keyspace.Key) *Shard {
	after := sort.Search(len(st.routes), func(i int) bool {
		return k.Less(st.routes[i].Range.Start)
	})
	return st.routes[after-1]
}

// OpenShards returns the open shards by hash key: they tile the key space. Only to be read.
func (st *Stream) OpenShards() []*Shard { return st.routes }

// Traffic returns the stream's counts, which all its copies share.
func (st *Stream) Traffic() *Traffic { return st.traffic }

// index derives routes from Shards and checks that they tile the key space.
func (st *Stream) index() error {
	if st.traffic == nil {
		st.traffic = new(Traffic)
	}
	st.routes = nil
	var ranges []keyspace.Range
	for _, sh := range st.Shards {
		if sh.IsOpen() {
			st.routes = append(st.routes, sh)
			ranges = append(ranges, sh.Range)
		}
	}
	if err := keyspace.Tiles(ranges); err != nil {
		return fmt.Errorf("%w: stream %s: its open shards: %w", errChange, st.Name, err)
	}
	slices.SortFunc(st.routes, func(a, b *Shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	return nil
}

// copy returns a copy that can be changed before it is published. The shards are shared.
func (st *Stream) copy() *Stream {
	other := *st
	other.version = nil
	other.Shards = slices.Clone(st.Shards)
	return &other
}

// ARN returns the stream's Amazon resource name.
func (st *Stream) ARN() string { return ARNPrefix(st.World) + st.Name }

// ARNPrefix returns the common prefix of the ARNs of a world's streams. The partition is that of
// the region, as in AWS's list of partitions.
func ARNPrefix(world wire.World) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(world.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(world.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return "arn:" + partition + ":kinesis:" + world.Region + ":" + world.Account + ":stream/"
}
