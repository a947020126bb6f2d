package catalogue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// The kinds of changes to the catalogue. The log holds these names.
const (
	ChangeKey      = "key"      // draw the directory's key
	ChangeCreate   = "create"   // a new stream
	ChangeDelete   = "delete"   // a stream begins to be deleted
	ChangeDrop     = "drop"     // a stream is gone, with its shards and their records
	ChangePlan     = "plan"     // a stream is UPDATING, and resharded at the end of it
	ChangeReshard  = "reshard"  // shards close and others open in their place; only read
	ChangeScale    = "scale"    // the same, and many at once
	ChangeRetain   = "retain"   // another retention period
	ChangeSettings = "settings" // other settings
	ChangeConsumer = "consumer" // a consumer is new, or changed, or begins to be deleted
	ChangeExpire   = "expire"   // removes closed shards with expired data
	ChangeAccount  = "account"  // other settings of an account and region
)

// Change is one frame of the catalogue: a decision with every drawn or measured value, so that
// applying it again gives the same state. That is why ranges, ids and times are written out.
type Change struct {
	Seq       uint64        `json:"seq"` // 1, 2, 3, …
	Op        string        `json:"op"`
	At        int64         `json:"at"`                // ms since 1970
	Elapsed   int64         `json:"elapsed,omitempty"` // elapsed ms; consumer; 0: as At
	World     *wire.World   `json:"world,omitempty"`
	Name      string        `json:"name,omitempty"`
	Key       []byte        `json:"key,omitempty"`
	Stream    *Stream       `json:"stream,omitempty"`    // create
	Until     int64         `json:"until,omitempty"`     // delete, plan, settings, reshard
	Plan      []Step        `json:"plan,omitempty"`      // plan
	Close     []uint32      `json:"close,omitempty"`     // reshard
	Open      []*Shard      `json:"open,omitempty"`      // reshard
	Steps     []Replacement `json:"steps,omitempty"`     // scale
	Retention int64         `json:"retention,omitempty"` // retain: hours
	Expire    []uint32      `json:"expire,omitempty"`    // expire
	Settings  *Settings     `json:"settings,omitempty"`  // settings: all of them, as they are now
	Account   *Account      `json:"account,omitempty"`   // account: all of it, as it is now
	Consumer  *Consumer     `json:"consumer,omitempty"`  // consumer: as it is now
}

// Store is the part of shardlog.Store that the catalogue needs: it announces new, sealed and
// deleted shards. Readers see a seal or deletion once the returned function is called.
type Store interface {
	Create(id shardlog.ID) *shardlog.Shard
	Seal(id shardlog.ID) (published func())
	Delete(id shardlog.ID) (published func())
}

// publications are the calls to make once a change is durable. They let the store's readers see it,
// and do not block.
type publications []func()

func (p publications) run() {
	for _, publish := range p {
		publish()
	}
}

// errChange means that a change does not fit the state: it comes from another log than the
// catalogue.
var errChange = errors.New("the catalogue's log does not fit its state")

// apply makes the change ch to the state and to the store. On an error it leaves everything as it
// was. The caller holds the lock, and runs the publications once the change is durable.
func (c *Catalogue) apply(ch *Change) (publications, error) {
	if ch.Seq != c.state.Seq+1 {
		return nil, fmt.Errorf("%w: change %d follows change %d", errChange, ch.Seq, c.state.Seq)
	}
	if ch.At <= 0 { // such a shard would count as open
		return nil, fmt.Errorf("%w: change %d has no time", errChange, ch.Seq)
	}
	later, err := c.applyOp(ch)
	if err != nil {
		return nil, fmt.Errorf("change %d (%s %s): %w", ch.Seq, ch.Op, ch.Name, err)
	}
	c.state.Seq = ch.Seq
	c.state.At = max(c.state.At, ch.At)
	if c.changed != nil && ch.World != nil {
		later = append(later, func() { c.changed(Key{*ch.World, ch.Name}) })
	}
	return later, nil
}

func (c *Catalogue) applyOp(ch *Change) (publications, error) {
	switch ch.Op {
	case ChangeKey:
		if len(ch.Key) != KeySize {
			return nil, fmt.Errorf("%w: the key has %d bytes", errChange, len(ch.Key))
		}
		c.state.Key = slices.Clone(ch.Key)
		return nil, nil
	case ChangeCreate:
		return nil, c.applyCreate(ch)
	case ChangeAccount:
		return nil, c.applyAccount(ch)
	}
	if ch.World == nil {
		return nil, fmt.Errorf("%w: no world", errChange)
	}
	st := c.streams[Key{*ch.World, ch.Name}]
	if st == nil {
		return nil, fmt.Errorf("%w: no such stream", errChange)
	}
	switch ch.Op {
	case ChangeDelete:
		next := st.copy()
		next.Phase, next.Until, next.Pending = StatusDeleting, ch.Until, nil
		c.streams[st.Key()] = next
		return nil, nil
	case ChangeDrop:
		return c.applyDrop(st), nil
	case ChangePlan:
		return nil, c.applyPlan(st, ch)
	case ChangeReshard:
		return c.applySteps(st, ch, []Replacement{{ch.Close, ch.Open}})
	case ChangeScale:
		return c.applySteps(st, ch, ch.Steps)
	case ChangeRetain:
		next := st.copy()
		next.Retention = ch.Retention
		c.streams[st.Key()] = next
		return nil, nil
	case ChangeSettings:
		if ch.Settings == nil {
			return nil, fmt.Errorf("%w: no settings", errChange)
		}
		next := st.copy()
		next.Settings = *ch.Settings
		if ch.Until != 0 {
			next.Phase, next.Until = StatusUpdating, ch.Until
		}
		c.streams[st.Key()] = next
		return nil, nil
	case ChangeConsumer:
		return nil, c.applyConsumer(st, ch)
	case ChangeExpire:
		return c.applyExpire(st, ch)
	default:
		return nil, fmt.Errorf("%w: written by a newer version of runnel?", errChange)
	}
}

func (c *Catalogue) applyCreate(ch *Change) error {
	if ch.Stream == nil || c.streams[ch.Stream.Key()] != nil {
		return fmt.Errorf("%w: the stream is there already", errChange)
	}
	st := ch.Stream.copy()
	if err := checkShards(st.Shards); err != nil {
		return err
	}
	if err := checkConsumers(st.Consumers); err != nil {
		return err
	}
	if err := st.index(); err != nil {
		return err
	}
	if err := st.checkSteps(st.Pending); err != nil {
		return err
	}
	c.streams[st.Key()] = st
	for _, sh := range st.Shards {
		c.store.Create(sh.Log)
		c.state.NextLog = max(c.state.NextLog, sh.Log+1)
	}
	return nil
}

func (c *Catalogue) applyDrop(st *Stream) (later publications) {
	delete(c.streams, st.Key())
	c.state.DroppedAt = max(c.state.DroppedAt, st.Created)
	for _, sh := range st.Shards {
		c.state.DroppedNumber = max(c.state.DroppedNumber, sh.Created)
		later = append(later, c.store.Delete(sh.Log))
	}
	return later
}

func (c *Catalogue) applyExpire(st *Stream, ch *Change) (later publications, err error) {
	next := st.copy()
	var expired []*Shard
	for _, index := range ch.Expire {
		at := next.position(index)
		if at < 0 || next.Shards[at].IsOpen() {
			return nil, fmt.Errorf("%w: shard %d is not closed", errChange, index)
		}
		expired = append(expired, next.Shards[at])
		next.Shards = slices.Delete(next.Shards, at, at+1)
	}
	for _, sh := range expired {
		later = append(later, c.store.Delete(sh.Log))
	}
	c.streams[st.Key()] = next
	return later, nil
}

// checkShards returns an error unless the shards are in the order of their indexes and each has its
// log.
func checkShards(shards []*Shard) error {
	for i, sh := range shards {
		if sh == nil || sh.Log == 0 || (i > 0 && sh.Index <= shards[i-1].Index) {
			return fmt.Errorf("%w: shard %d of %d is misplaced", errChange, i, len(shards))
		}
	}
	return nil
}
