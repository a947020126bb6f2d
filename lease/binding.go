package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
)

// Stream is the identity of a stream. A stream that was deleted and created again under its old
// name is another stream, since its sequence numbers mean something else.
type Stream struct {
	Name    string    // as in the calls of the API
	Created time.Time // StreamCreationTimestamp, in milliseconds
}

// String returns "name@milliseconds".
func (s Stream) String() string {
	return fmt.Sprintf("%s@%d", s.Name, s.Created.UnixMilli())
}

// ErrOtherStream is the error that every *StreamError matches.
var ErrOtherStream = errors.New("the lease table belongs to another stream")

// StreamError is returned if a table holds the leases of a stream other than the one to be read.
// errors.Is(err, ErrOtherStream) holds.
type StreamError struct {
	Table string // the table's name
	Want  string // the stream to be read, as Stream.String gives it
	Have  string // the stream of the table; "" if only Misfit shows that it is another one
	// Misfit says which lease cannot be one of the stream to be read, and why; see Table.Fits.
	Misfit string
}

func (e *StreamError) Error() string {
	const advice = "(name@creation in ms): use another application name, or delete the table if " +
		"its positions are no longer wanted"
	if e.Have == "" {
		return fmt.Sprintf("the lease table %s holds positions of another stream than %s %s: %s",
			e.Table, e.Want, advice, e.Misfit)
	}
	return fmt.Sprintf("the lease table %s holds the positions of the stream %s, and this is %s %s",
		e.Table, e.Have, e.Want, advice)
}

// Is reports whether target is ErrOtherStream.
func (e *StreamError) Is(target error) bool { return target == ErrOtherStream }

func (t *Table) streamError(have string) error {
	return &StreamError{Table: t.cfg.Table, Want: t.cfg.Stream.String(), Have: have}
}

// Binding is the part of a table's content that concerns the whole application.
type Binding struct {
	// Origin is where reading begins in a shard that has no parent in the table: the choice of the
	// application's first worker holds for all. LATEST is pinned to the time of that choice.
	Origin runnel.From
	// New is set if the table has no lease. Begin settles the origin then.
	New bool
	// Synced is set once the leases of the shards at the origin have all been created. Until then a
	// row has a mark, Lease.Beginning, and each worker creates the missing ones before it reads
	// anything. So no shard has ended by then, and one without a lease has not been cleaned away.
	Synced bool

	old bool // the table has the item of an older version
}

// These name the item in which older versions stored the stream and the origin. Java workers take
// every row for a lease: KCL 2.7.2 does not start beside this one, and 3.5.1 logs an error at every
// scan. So the first worker of this version moves its content to the lease rows.
const (
	oldBindingKey    = "runnelStream"
	oldBindingEntity = "RUNNEL_STREAM"
	oldAttrSynced    = "runnelSynced"
)

// Bind checks that the table can be used for the stream, and returns the binding of
// earlier workers. It returns a *StreamError if they read another stream or a recreated one,
// ErrManagedByKCL3 if the KCL 3.x runs the table in its own way, and ErrMultiStream for the table
// of an application that reads several streams. origin counts only in a table that has none; it
// cannot be a sequence number, which is of one shard.
func (t *Table) Bind(ctx context.Context, origin runnel.From) (Binding, error) {
	if n := origin.Sequence(); n != "" {
		return Binding{}, t.wrap("bind", "", fmt.Errorf("the origin is the sequence number %s: "+
			"want the oldest record, the latest or a time", n))
	}
	if err := t.RefuseKCL3(ctx); err != nil {
		return Binding{}, err
	}
	rows, err := t.scan(ctx, true)
	if err != nil {
		return Binding{}, err
	}
	if rows.old != nil {
		return t.readOldBinding(rows.old)
	}
	stamped, begun := settled(rows.leases)
	b := Binding{Origin: inferred(rows.leases, origin), Synced: begun}
	if b.New = len(rows.leases)+len(rows.skipped) == 0; b.New {
		b.Synced = false
	}
	if stamped != nil {
		b.Origin = *stamped
	}
	return b, nil
}

// settled returns the origin of the rows of this package; nil if no row has one. begun is false as
// long as a row is marked. Several are marked, with different origins, if workers began the table
// at the same time, in the middle of a reshard. Then the largest shard's origin holds: see Begin.
// Without a mark all rows have the same origin.
func settled(leases []Lease) (origin *runnel.From, begun bool) {
	begun = true
	for _, l := range leases { // in the order of their keys
		switch {
		case l.Origin == nil:
		case l.Beginning || origin == nil:
			origin = l.Origin
		}
		begun = begun && !l.Beginning
	}
	return origin, begun
}

// inferred returns the origin that rows without one suggest: that of a Java application. A row at
// LATEST or AT_TIMESTAMP says it. One at TRIM_HORIZON says it only if its shard has no parents,
// since children begin there whatever the origin is. own is the worker's own choice, which serves
// if the rows say nothing. Java keeps the time of AT_TIMESTAMP in its configuration alone, and
// none for LATEST, so own serves there, too, if it has a time.
func inferred(leases []Lease, own runnel.From) runnel.From {
	origin := own
	for _, l := range leases {
		switch word := l.Checkpoint.Sequence; {
		case word != runnel.Latest && word != runnel.AtTimestamp:
			if word == runnel.TrimHorizon && len(l.Parents) == 0 {
				origin = runnel.FromOldest()
			}
		case !l.From.IsZero() && word == runnel.AtTimestamp:
			return runnel.FromTime(l.From)
		case !l.From.IsZero():
			return runnel.FromLatest().Pin(l.From)
		case !own.Time().IsZero():
			return own
		case word == runnel.Latest:
			return runnel.FromLatest()
		default:
			return own
		}
	}
	return origin
}

// Old reports whether the table still has the item of an older version: MarkSynced removes it.
func (b Binding) Old() bool { return b.old }

func (t *Table) readOldBinding(row item) (Binding, error) {
	if have := text(row, attrStream); have != t.cfg.Stream.String() {
		return Binding{}, t.streamError(have)
	}
	r := reader{row: row}
	b := Binding{
		Origin: r.origin(attrFrom), Synced: r.number(oldAttrSynced, false) == 1, old: true,
	}
	if r.err != nil {
		return Binding{}, t.wrap("bind", oldBindingKey, r.err)
	}
	return b, nil
}

// origin reads the origin: its word, and its time in the attribute at.
func (r *reader) origin(attrAt string) runnel.From {
	var at time.Time
	if _, there := r.row[attrAt]; there {
		at = time.UnixMilli(r.number(attrAt, true)).UTC()
	}
	switch word := runnel.SequenceNumber(r.must(attrOrigin)); word {
	case runnel.Latest:
		return runnel.FromLatest().Pin(at)
	case runnel.AtTimestamp:
		return runnel.FromTime(at)
	case runnel.TrimHorizon, "": // "" has failed
	default:
		r.fail(attrOrigin, "is %q: want TRIM_HORIZON, LATEST or AT_TIMESTAMP", word)
	}
	return runnel.FromOldest()
}

// setOrigin writes the origin.
func setOrigin(origin runnel.From, u *update) {
	u.set(attrOrigin, str(string(origin.Word())))
	if at := origin.Time(); !at.IsZero() {
		u.set(attrOriginAt, num(at.UnixMilli()))
	} else {
		u.remove(attrOriginAt)
	}
}
