package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

const (
	snapshotVersion = 1
	// KeySize is the length in bytes of the key that seals iterators and page tokens.
	KeySize = 32
)

// Catalogue holds the streams and shards of a data directory. It is a state machine: memory holds
// the whole state, and the log holds every change as a frame.
//
// Methods that say so are called inside Read or Write. The published streams never change, so they
// may be used after it.
type Catalogue struct {
	store   Store
	changed func(Key) // see OnChange

	mu      sync.RWMutex // in wal.Log.Sequence: see the package comment
	state   catalogueState
	streams map[Key]*Stream
	lsn     wal.LSN // of the last change; readers wait for it
}

// catalogueState is the catalogue's state besides its streams.
type catalogueState struct {
	Seq     uint64      `json:"seq"`     // of the last change
	At      int64       `json:"at"`      // when it was decided: the clock's floor at a start
	Key     []byte      `json:"key"`     // seals iterators and page tokens; drawn once
	NextLog shardlog.ID `json:"nextLog"` // the next shard's records
	// DroppedAt is the latest creation time (ms) among deleted streams. DroppedNumber is the latest
	// among deleted shards (seconds, as in sequence numbers). New streams and shards get higher
	// values, so that two streams of one name differ even if the clock did not advance.
	DroppedAt     int64 `json:"droppedAt"`
	DroppedNumber int64 `json:"droppedNumber"`
	// Accounts are the worlds that have settings of their own, in order.
	Accounts []Account `json:"accounts,omitempty"`
}

// snapshot is the catalogue as Freeze writes it.
type snapshot struct {
	Version int `json:"version"`
	catalogueState
	Streams []*Stream `json:"streams"`
}

// New returns an empty catalogue that logs its changes in a store.
func New(store Store) *Catalogue {
	return &Catalogue{
		store:   store,
		state:   catalogueState{NextLog: 1},
		streams: make(map[Key]*Stream),
	}
}

// OnChange sets the function that is called for every change to a stream, once readers see it. It
// must not block. It returns the function before; nil means none.
func (c *Catalogue) OnChange(changed func(Key)) (before func(Key)) {
	before, c.changed = c.changed, changed
	return before
}

// Read runs look while nothing changes.
func (c *Catalogue) Read(look func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	look()
}

// Write runs decide, which may change the catalogue, while no other goroutine reads or changes it.
// Call it inside wal.Log.Sequence.
func (c *Catalogue) Write(decide func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	decide()
}

// LSN returns the position of the last change, inside Read or Write. An answer that depends on the
// catalogue waits until the log is durable up to there.
func (c *Catalogue) LSN() wal.LSN { return c.lsn }

// Seq returns the number of changes so far, inside Read or Write.
func (c *Catalogue) Seq() uint64 { return c.state.Seq }

// DecidedAt returns when the last change was decided, in ms, inside Read or Write.
func (c *Catalogue) DecidedAt() int64 { return c.state.At }

// SealKey returns the directory's key, nil before it is drawn, inside Read or Write.
func (c *Catalogue) SealKey() []byte { return c.state.Key }

// All iterates over the streams, in no order and also those that are gone, inside Read or Write.
func (c *Catalogue) All() iter.Seq[*Stream] { return maps.Values(c.streams) }

// Get returns the stream also after the end of its deletion, or nil, inside Read or Write.
func (c *Catalogue) Get(key Key) *Stream { return c.streams[key] }

// Find returns the stream, or nil if it does not exist at that time, inside Read or Write.
func (c *Catalogue) Find(world wire.World, name string, now serverclock.Moment) *Stream {
	st := c.streams[Key{world, name}]
	if st == nil || st.Gone(now) {
		return nil
	}
	return st
}

// Commit applies a change and appends it to the log. The caller is inside Write,
// and answers only after wal.Log.Wait of the new LSN.
func (c *Catalogue) Commit(tx *wal.Tx, ch *Change) error {
	ch.Seq = c.state.Seq + 1
	frame, err := json.Marshal(ch)
	if err != nil {
		return fmt.Errorf("write change %s %s: %w", ch.Op, ch.Name, err)
	}
	was := c.named(ch)
	later, err := c.apply(ch)
	if err != nil {
		return err
	}
	later = append(c.newVersion(was, c.named(ch)), later...)
	// Always synced: a power cut must not lose a reshard. It would reopen a shard after readers saw
	// its end, and give the ids of its children out again.
	c.lsn = tx.AppendSynced(wal.KindCatalogue, frame, later.run)
	return nil
}

// named returns the stream of a change, or nil.
func (c *Catalogue) named(ch *Change) *Stream {
	switch {
	case ch.Stream != nil:
		return c.streams[ch.Stream.Key()]
	case ch.World == nil:
		return nil
	default:
		return c.streams[Key{*ch.World, ch.Name}]
	}
}

// newVersion lets readers see a stream as it was until the change is durable. The caller runs the
// returned functions then, before anything else: a reader that sees a sealed shard must find its
// children.
func (c *Catalogue) newVersion(was, now *Stream) publications {
	if now == nil || now == was {
		return nil
	}
	now.version = new(version)
	if was != nil {
		now.version.before.Store(was)
		if was.version != nil && was.version.durable.Load() {
			was.version.before.Store(nil) // a durable version needs no older one
		}
	}
	return publications{func() { now.version.durable.Store(true) }}
}

// Replay is part of wal.Machine.
func (c *Catalogue) Replay(_ wal.LSN, payload []byte) error {
	var ch Change
	if err := json.Unmarshal(payload, &ch); err != nil {
		return fmt.Errorf("read a change of the catalogue: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.Seq <= c.state.Seq {
		return nil // the snapshot holds it
	}
	later, err := c.apply(&ch)
	later.run()
	return err
}

// Salvage is Replay for a repair: it also takes a change whose predecessors are lost. It returns
// the number of the lost changes before this one. If the change does not fit the state without
// them, it returns an error and leaves the change out.
func (c *Catalogue) Salvage(payload []byte) (lost uint64, err error) {
	var ch Change
	if err := json.Unmarshal(payload, &ch); err != nil {
		return 0, fmt.Errorf("read a change of the catalogue: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.Seq <= c.state.Seq {
		return 0, nil // the snapshot holds it
	}
	lost = ch.Seq - c.state.Seq - 1
	c.state.Seq = ch.Seq - 1
	later, err := c.apply(&ch)
	c.state.Seq = ch.Seq
	later.run()
	return lost, err
}

// Restore is part of wal.Machine. The shards' records are restored by their own machine.
func (c *Catalogue) Restore(data []byte) error {
	var snap snapshot
	if err := json.Unmarshal(data, &snap); err != nil {
		return fmt.Errorf("read the catalogue's snapshot: %w", err)
	}
	if snap.Version != snapshotVersion {
		return fmt.Errorf("the catalogue's snapshot has version %d, this runnel reads version %d: "+
			"use the runnel that wrote it or a newer one", snap.Version, snapshotVersion)
	}
	streams := make(map[Key]*Stream, len(snap.Streams))
	for _, st := range snap.Streams {
		if st == nil || streams[st.Key()] != nil {
			return fmt.Errorf("%w: a stream of the snapshot is missing or double", errChange)
		}
		if err := checkShards(st.Shards); err != nil {
			return fmt.Errorf("stream %s: %w", st.Name, err)
		}
		if err := checkConsumers(st.Consumers); err != nil {
			return fmt.Errorf("stream %s: %w", st.Name, err)
		}
		if err := st.index(); err != nil {
			return err
		}
		if err := st.checkSteps(st.Pending); err != nil {
			return err
		}
		streams[st.Key()] = st
	}
	if err := checkAccounts(snap.Accounts); err != nil {
		return err
	}
	if n := len(snap.Key); n != 0 && n != KeySize {
		return fmt.Errorf("%w: the snapshot's key has %d bytes", errChange, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.streams = snap.catalogueState, streams
	c.state.NextLog = max(c.state.NextLog, 1)
	return nil
}

// Freeze is part of wal.Machine. Published streams never change, so it is enough to copy the
// references.
func (c *Catalogue) Freeze() func(context.Context) ([]byte, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	snap := snapshot{Version: snapshotVersion, catalogueState: c.state}
	snap.Streams = make([]*Stream, 0, len(c.streams))
	for _, st := range c.streams {
		snap.Streams = append(snap.Streams, st)
	}
	return func(context.Context) ([]byte, error) {
		data, err := json.Marshal(snap)
		if err != nil {
			return nil, fmt.Errorf("write the catalogue's snapshot: %w", err)
		}
		return data, nil
	}
}
