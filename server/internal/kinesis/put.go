package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// route returns an entry's hash key.
func route(e *wire.PutEntry, v *violations) keyspace.Key {
	if e.ExplicitHashKey == nil {
		return keyspace.Of(*e.PartitionKey)
	}
	hash, err := keyspace.Parse(*e.ExplicitHashKey)
	if err != nil {
		v.fail(invalid("Invalid ExplicitHashKey. ExplicitHashKey must be in the range: "+
			"[0, 2^128-1]. Specified value was %s", *e.ExplicitHashKey))
	}
	return hash
}

// putResult is the result of an entry: its shard and number, or why it was not stored.
type putResult struct {
	shard     *catalogue.Shard
	number    shardlog.Number
	encrypted bool   // as the answer says
	code      string // "": it was stored
	message   string
}

// fail notes why an entry of a shard was not stored.
func (r *putResult) fail(code string, st *catalogue.Stream, sh *catalogue.Shard) {
	r.code, r.message = code, "Internal service failure."
	if code == codeThrottled {
		r.message = "Rate exceeded for shard " + sh.ID() + " in stream " + st.Name +
			" under account " + st.World.Account + "."
	}
}

// putRequest is the records of a call.
type putRequest struct {
	target  *target
	origin  *wire.Origin // nil: nothing is known of the call's age
	entries []wire.PutEntry
	hashes  []keyspace.Key // of the entries
	results []putResult
	member  func(i int) string // the prefix of the names of an entry's members, for messages
}

// writer stores the records of puts.
type writer struct {
	streams *streams
	shards  *shardlog.Store
	limits  *limiter
	pauses  *pause.Watch // nil: no check of the calls' age by the process's pauses
}

// putPiece is the number of bytes that are sequenced at a time. Small calls, such as the write of a
// lease, come between the pieces of a large one.
const putPiece = 1 << 20

// put stores the entries without an error code so far, and returns once they are durable. After an
// error it is unknown whether they were stored, unless the error is an *wire.Error or one of
// NotStored: then none is.
func (w *writer) put(ctx context.Context, world wire.World, p putRequest) error {
	size := int64(0)
	for i := range p.entries {
		size += int64(p.entries[i].Size()) + frameOverhead
	}
	if err := w.streams.memory.Take(size); err != nil {
		return err
	}
	defer w.streams.memory.GiveBack(size)
	name, err := p.target.name(world)
	if err != nil {
		return err
	}
	c := putting{writer: w, world: world, name: name, putRequest: &p}
	for c.from < len(p.entries) && c.refused == nil {
		if err := c.piece(ctx); err != nil {
			return err
		}
	}
	if c.refused != nil && c.stream != nil {
		c.failRest()
	}
	if NotStored(c.refused) { // the disk may hang
		return c.refused
	}
	if err := w.streams.log.Wait(ctx, c.seen); err != nil {
		return err
	}
	if c.stream != nil {
		c.stream.Traffic().In(storedOf(p.entries, p.results))
	}
	return c.refused
}

// putting is a call of put.
type putting struct {
	*writer
	*putRequest

	world   wire.World
	name    string
	from    int               // the first entry that has not been sequenced
	stream  *catalogue.Stream // nil: no entry has been stored
	seen    wal.LSN           // of the state that the answer depends on
	refused error             // why the entries from "from" on are not stored
}

// piece sequences the next entries. An error is of the whole call; a piece that is not stored after
// others were is not one.
func (c *putting) piece(ctx context.Context) error {
	to, size := c.from, 0
	for ; to < len(c.entries); to++ {
		more := c.entries[to].Size() + frameOverhead
		if to > c.from && size+more > putPiece {
			break
		}
		size += more
	}
	err := c.streams.log.SequencePaced(ctx, size, func(tx *wal.Tx) {
		c.streams.catalogue.Read(func() { c.store(tx, to) })
	})
	if NotStored(err) && c.stream != nil {
		c.refused = err
		return nil
	}
	return err
}

// store appends the entries up to number to, or notes why it does not. It decides on the whole call
// with the first piece: on its size, and on the limits.
func (c *putting) store(tx *wal.Tx, to int) {
	now := c.streams.clock.read()
	catalogue := c.streams.catalogue
	c.seen = max(c.seen, catalogue.LSN())
	if c.refused = c.tooLate(c.origin, now); c.refused != nil {
		return
	}
	st := catalogue.Find(c.world, c.name, now)
	if st == nil || !st.Serves(now) || c.stream != nil && st.Created != c.stream.Created {
		c.refused = streamNotFound(c.world, c.name)
		return
	}
	if c.stream == nil {
		if c.refused = tooLarge(st, c.entries, c.member); c.refused != nil {
			return
		}
		c.limits.writes(st, c.putRequest, now)
		c.explain(st)
	}
	piece := *c.putRequest
	piece.entries, piece.hashes = c.entries[c.from:to], c.hashes[c.from:to]
	piece.results = c.results[c.from:to]
	appended, err := c.appendEntries(tx, st, &piece)
	if err != nil && c.stream == nil {
		c.refused = err
		return
	}
	c.seen, c.stream, c.from = max(c.seen, appended), st, to
}

// explain completes the results of the entries that are not to be stored. Their pieces may never
// come.
func (c *putting) explain(st *catalogue.Stream) {
	for i := range c.results {
		if r := &c.results[i]; r.code != "" {
			r.fail(r.code, st, st.Route(c.hashes[i]))
		}
	}
}

// failRest fails the entries that were not sequenced, behind others that were.
func (c *putting) failRest() {
	for i := c.from; i < len(c.results); i++ {
		if r := &c.results[i]; r.code == "" {
			r.code = codeRecordInternal
			r.message = "Internal service failure: the record was not stored: " + c.refused.Error()
		}
	}
	c.refused = nil
}

// storedOf returns the number of stored entries, and their bytes of data and partition keys.
func storedOf(entries []wire.PutEntry, results []putResult) (records, bytes int) {
	for i := range results {
		if results[i].code == "" {
			records++
			bytes += entries[i].Size()
		}
	}
	return records, bytes
}

// frameOverhead is an upper bound of the log's bytes for a record besides its data and key,
// including the header of a batch of its own.
const frameOverhead = 128

// tooLarge returns an error if an entry is larger than the stream's maximum record size.
func tooLarge(
	st *catalogue.Stream, entries []wire.PutEntry, member func(i int) string,
) error {
	limit := int(st.MaxRecord) << 10
	for i := range entries {
		e := &entries[i]
		if e.Size() <= limit {
			continue
		}
		name := member(i) + "data"
		if len(e.Data) > limit {
			var v violations
			v.tooLong(name, len(e.Data), limit)
			return v.err()
		}
		return invalid("The record at '%s' in a request to stream %s under account %s has %d "+
			"bytes with its partition key, more than the stream's maximum record size of %d bytes.",
			name, st.Name, st.World.Account, e.Size(), limit)
	}
	return nil
}

// group is the entries of a request for one shard, in the request's order.
type group struct {
	shard   *catalogue.Shard
	count   int
	entries []shardlog.Entry
	at      []int // the entries' places in the request
}

// groupByShard assigns every entry without an error code to the open shard of its hash key. The
// groups share two arrays, so that a request costs few allocations however many shards it meets.
func groupByShard(st *catalogue.Stream, p *putRequest) []*group {
	entries, results := p.entries, p.results
	of := make([]*group, len(entries))
	byShard := make(map[*catalogue.Shard]*group)
	var groups []*group
	for i := range entries {
		if results[i].code != "" {
			continue
		}
		sh := st.Route(p.hashes[i])
		g := byShard[sh]
		if g == nil {
			g = &group{shard: sh}
			byShard[sh] = g
			groups = append(groups, g)
		}
		g.count++
		of[i] = g
	}
	all, at, from := make([]shardlog.Entry, len(entries)), make([]int, len(entries)), 0
	for _, g := range groups {
		to := from + g.count
		g.entries, g.at = all[from:from:to], at[from:from:to]
		from = to
	}
	for i, g := range of {
		if g != nil {
			e := &entries[i]
			g.entries = append(g.entries,
				shardlog.Entry{PartitionKey: *e.PartitionKey, Data: e.Data})
			g.at = append(g.at, i)
		}
	}
	return groups
}

// appendEntries appends the entries, one batch a shard. The caller holds the catalogue's lock, so
// that no shard is closed meanwhile. If a shard accepts no writes, its entries fail; if no shard
// does, it returns the first shard's error.
func (w *writer) appendEntries(
	tx *wal.Tx, st *catalogue.Stream, p *putRequest,
) (seen wal.LSN, err error) {
	stored, results := false, p.results
	for _, g := range groupByShard(st, p) {
		numbers, lsn, appendErr := w.appendBatch(tx, g.shard, g.entries)
		if appendErr != nil {
			if err == nil {
				err = fmt.Errorf("put to stream %s, %s: %w", st.Name, g.shard.ID(), appendErr)
			}
			for _, i := range g.at {
				results[i].fail(codeRecordInternal, st, g.shard)
			}
			continue
		}
		stored = true
		seen = lsn // of the last frame so far
		for j, i := range g.at {
			results[i].shard, results[i].number = g.shard, numbers[j]
			results[i].encrypted = st.Encrypts(numbers[j].Arrival)
		}
	}
	if stored {
		return seen, nil
	}
	return seen, err
}

func (w *writer) appendBatch(
	tx *wal.Tx, sh *catalogue.Shard, entries []shardlog.Entry,
) ([]shardlog.Number, wal.LSN, error) {
	log := w.shards.Shard(sh.Log)
	if log == nil {
		return nil, 0, shardlog.ErrDeleted
	}
	numbers, lsn, err := log.Append(tx, entries)
	if err == nil {
		w.streams.clock.notBefore(numbers[0].Arrival) // the store's clock, which may be ahead
	}
	return numbers, lsn, err
}
