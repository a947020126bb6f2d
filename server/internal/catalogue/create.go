package catalogue

import (
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Create fills in the stream's times and shards and commits it. First it removes the rest of a
// deleted stream of that name. Sequence numbers and creation times are above those of every deleted
// stream, so that nothing of theirs is taken for the new stream's.
// until is in elapsed ms.
func (c *Catalogue) Create(
	tx *wal.Tx, st *Stream, shards int, now serverclock.Moment, until int64,
) error {
	if old := c.streams[st.Key()]; old != nil {
		if err := c.Drop(tx, old, now); err != nil {
			return err
		}
	}
	st.Created = max(now.Stamp, c.state.DroppedAt+1)
	created := max(now.Stamp/1000, c.state.DroppedNumber+1)
	if until > now.Elapsed {
		st.Phase, st.Until = StatusCreating, until
	}
	for i, r := range keyspace.Uniform(shards) {
		st.Shards = append(st.Shards, &Shard{
			Index:   uint32(i),
			Log:     c.state.NextLog + shardlog.ID(i),
			Range:   r,
			Created: created,
			Opened:  st.Created,
		})
	}
	st.Next = uint32(shards)
	return c.Commit(tx, &Change{Op: ChangeCreate, At: now.Stamp, Name: st.Name, Stream: st})
}

// Expired returns the indexes of the closed shards with expired data.
func (st *Stream) Expired(now serverclock.Moment) []uint32 {
	var expired []uint32
	horizon := now.Horizon(st.RetentionMs())
	for _, sh := range st.Shards {
		if sh.expired(horizon) {
			expired = append(expired, sh.Index)
		}
	}
	return expired
}

// Drop removes a stream from the catalogue after the end of its deletion.
func (c *Catalogue) Drop(tx *wal.Tx, st *Stream, now serverclock.Moment) error {
	return c.Commit(tx, &Change{Op: ChangeDrop, At: now.Stamp, World: &st.World, Name: st.Name})
}

// Expire removes the stream's expired shards from the catalogue, if there are any.
func (c *Catalogue) Expire(tx *wal.Tx, st *Stream, now serverclock.Moment) error {
	expired := st.Expired(now)
	if len(expired) == 0 {
		return nil
	}
	return c.Commit(tx, &Change{
		Op: ChangeExpire, At: now.Stamp, World: &st.World, Name: st.Name, Expire: expired,
	})
}
