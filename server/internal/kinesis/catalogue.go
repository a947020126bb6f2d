package kinesis

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

const (
	snapshotVersion = 1
	keySize         = 32
)

// catalogue holds the streams and shards of a data directory. It is a state machine: memory holds
// the whole state, and the log holds every change as a frame.
type catalogue struct {
	store shardStore
	// changed is called for every change to a stream, once readers see it, and must not block.
	// Default nil: nothing is called.
	changed func(streamKey)

	mu      sync.RWMutex // in wal.Log.Sequence: see the package comment
	state   catalogueState
	streams map[streamKey]*stream
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
	Accounts []account `json:"accounts,omitempty"`
}

// snapshot is the catalogue as Freeze writes it.
type snapshot struct {
	Version int `json:"version"`
	catalogueState
	Streams []*stream `json:"streams"`
}

func newCatalogue(store shardStore) *catalogue {
	return &catalogue{
		store:   store,
		state:   catalogueState{NextLog: 1},
		streams: make(map[streamKey]*stream),
	}
}

// find returns the stream, or nil if it does not exist at that time. The caller holds the lock.
func (c *catalogue) find(world wire.World, name string, now int64) *stream {
	st := c.streams[streamKey{world, name}]
	if st == nil || st.gone(now) {
		return nil
	}
	return st
}

// commit applies a change and appends it to the log. The caller holds the lock, inside
// wal.Log.Sequence, and answers only after wal.Log.Wait(c.lsn).
func (c *catalogue) commit(tx *wal.Tx, ch *change) error {
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
func (c *catalogue) named(ch *change) *stream {
	switch {
	case ch.Stream != nil:
		return c.streams[ch.Stream.key()]
	case ch.World == nil:
		return nil
	default:
		return c.streams[streamKey{*ch.World, ch.Name}]
	}
}

// newVersion lets readers see a stream as it was until the change is durable. The caller runs the
// returned functions then, before anything else: a reader that sees a sealed shard must find its
// children.
func (c *catalogue) newVersion(was, now *stream) publications {
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
func (c *catalogue) Replay(_ wal.LSN, payload []byte) error {
	var ch change
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

// Restore is part of wal.Machine. The shards' records are restored by their own machine.
func (c *catalogue) Restore(data []byte) error {
	var snap snapshot
	if err := json.Unmarshal(data, &snap); err != nil {
		return fmt.Errorf("read the catalogue's snapshot: %w", err)
	}
	if snap.Version != snapshotVersion {
		return fmt.Errorf("the catalogue's snapshot has version %d, this runnel reads version %d: "+
			"use the runnel that wrote it or a newer one", snap.Version, snapshotVersion)
	}
	streams := make(map[streamKey]*stream, len(snap.Streams))
	for _, st := range snap.Streams {
		if st == nil || streams[st.key()] != nil {
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
		streams[st.key()] = st
	}
	if err := checkAccounts(snap.Accounts); err != nil {
		return err
	}
	if n := len(snap.Key); n != 0 && n != keySize {
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
func (c *catalogue) Freeze() func(context.Context) ([]byte, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	snap := snapshot{Version: snapshotVersion, catalogueState: c.state}
	snap.Streams = make([]*stream, 0, len(c.streams))
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
