package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
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
	Have  string // the stream of the table
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("the lease table %s holds the positions of the stream %s, and this is %s "+
		"(name@creation in ms): use another application name, or delete the table if its "+
		"positions are no longer wanted", e.Table, e.Have, e.Want)
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
	// Synced is set once the leases of the shards at the origin have all been created. It is not
	// needed for safety after that: a worker creates the missing leases before it reads anything.
	Synced bool

	first runnel.ShardID // the row with the mark of an unfinished beginning; "" if there is none
	old   bool           // the table has the item of an older version; see Synced
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
	b := Binding{Origin: inferred(rows.leases, origin), Synced: true}
	if b.New = len(rows.leases)+len(rows.skipped) == 0; b.New {
		b.Synced = false
	}
	for _, l := range slices.Backward(rows.leases) { // the smallest key decides
		if l.Origin != nil {
			b.Origin = *l.Origin
		}
		if l.Beginning {
			b.first, b.Synced = l.Key, false
		}
	}
	return b, nil
}

// inferred returns the origin that rows without one suggest: that of a Java application that has
// not processed anything yet. The rows of shards without parents say it; others begin with
// TRIM_HORIZON whatever the application's origin is. own is the worker's own choice, which serves
// if the rows say nothing. Java keeps the time of AT_TIMESTAMP in its configuration alone, so own
// serves there, too.
func inferred(leases []Lease, own runnel.From) runnel.From {
	for _, l := range leases {
		if len(l.Parents) > 0 {
			continue
		}
		switch {
		case l.Checkpoint.Sequence == runnel.TrimHorizon:
			return runnel.FromOldest()
		case l.Checkpoint.Sequence == runnel.Latest && own.Word() != runnel.Latest:
			return runnel.FromLatest().Pin(l.From)
		case l.Checkpoint.Sequence == runnel.AtTimestamp && !l.From.IsZero():
			return runnel.FromTime(l.From)
		}
	}
	return own
}

// Begin creates the first lease of a new table. Its row settles the origin for all: of several
// workers that begin at the same time, each calls Begin with the lease of the same shard, and the
// binding has the origin of the one that was first. The row is marked until MarkSynced.
func (t *Table) Begin(ctx context.Context, first Lease, origin runnel.From) (Binding, error) {
	first.Origin, first.Beginning = &origin, true
	stands, _, err := t.Create(ctx, first)
	if err != nil {
		return Binding{}, err
	}
	b := Binding{Origin: origin, Synced: !stands.Beginning}
	if stands.Beginning {
		b.first = stands.Key
	}
	if stands.Origin != nil {
		b.Origin = *stands.Origin
	}
	return b, nil
}

// MarkSynced records that the leases at the origin exist. In the table of an older version it
// writes the stream and the origin into every row and then removes that version's item. It may be
// cut off anywhere and called again, by several workers at once.
func (t *Table) MarkSynced(ctx context.Context, b Binding) error {
	if b.old {
		return t.mend(ctx, b)
	}
	if b.first == "" {
		return nil
	}
	_, err := t.annotate(ctx, Lease{Key: b.first}, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String("attribute_exists(#key)"),
		UpdateExpression:    aws.String("REMOVE #beginning"),
		ExpressionAttributeNames: map[string]string{
			"#key": attrKey, "#beginning": attrBeginning,
		},
	})
	if _, gone := awserr.ConditionFailed(err); err != nil && !gone {
		return t.wrap("bind", b.first, err)
	}
	return nil
}

// Old reports whether the table still has the item of an older version: MarkSynced removes it.
func (b Binding) Old() bool { return b.old }

func (t *Table) mend(ctx context.Context, b Binding) error {
	rows, err := t.scan(ctx, true)
	if err != nil {
		return err
	}
	for _, l := range rows.leases {
		if l.Origin != nil {
			continue
		}
		u := &update{names: map[string]string{}, values: item{}}
		u.set(attrStream, str(t.cfg.Stream.String()))
		setOrigin(b.Origin, u)
		_, err := t.annotate(ctx, l, &dynamodb.UpdateItemInput{
			ConditionExpression:       aws.String("attribute_exists(" + u.name(attrKey) + ")"),
			UpdateExpression:          aws.String(u.expression()),
			ExpressionAttributeNames:  u.names,
			ExpressionAttributeValues: u.values,
		})
		if _, gone := awserr.ConditionFailed(err); err != nil && !gone {
			return t.wrap("bind", l.Key, err)
		}
	}
	if rows.old == nil {
		return nil
	}
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err = t.cfg.DynamoDB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(t.cfg.Table), Key: t.key(oldBindingKey),
		ConditionExpression:       aws.String("#stream = :stream"),
		ExpressionAttributeNames:  map[string]string{"#stream": attrStream},
		ExpressionAttributeValues: item{":stream": str(t.cfg.Stream.String())},
	})
	if _, gone := awserr.ConditionFailed(err); err != nil && !gone {
		return t.wrap("bind", oldBindingKey, err)
	}
	return nil
}

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
	}
}

// ErrMultiStream is returned for the table of an application that reads several streams.
var ErrMultiStream = errors.New("the lease table is of an application that reads several " +
	"streams: a worker beside it would put leases of its own there and read everything again: " +
	"use another application name")

// ErrManagedByKCL3 is returned for a table of a KCL 3.x fleet that assigns the leases in its own
// way.
var ErrManagedByKCL3 = errors.New("the lease table is run by KCL 3.x workers, whose " +
	"leader assigns the leases: use another application name, or take the Java fleet back to the " +
	"2.x protocol by the KCL's migration tool (KclMigrationTool, rollback) and then to its mode " +
	"COMPATIBLE_WITH_2X_PHASE1, the only one that writes nothing but leases")

// migrationKey is the row in which KCL 3.x stores the mode of its fleet: in the lease table since
// 3.5, in a table of its own before (MigrationState).
const migrationKey = "Migration3.0"

// RefuseKCL3 returns ErrManagedByKCL3 if a KCL 3.x leader assigns the table's leases. A fleet may
// turn to that while its workers run, so they look now and then.
func (t *Table) RefuseKCL3(ctx context.Context) error {
	row, err := t.getItem(ctx, t.cfg.Table, t.key(migrationKey))
	if err != nil {
		return t.wrap("bind", "", err)
	}
	if row == nil {
		key := item{"key": str(migrationKey)}
		row, err = t.getItem(ctx, t.cfg.Table+"-CoordinatorState", key)
		if err != nil && awserr.DynamoDB.Of(err) != awserr.Missing && !denied(err) {
			return t.wrap("bind", "", err)
		}
	}
	switch text(row, "cv") {
	case "CLIENT_VERSION_3X", "CLIENT_VERSION_3X_WITH_ROLLBACK":
		return t.wrap("bind", "", ErrManagedByKCL3)
	}
	return nil
}

// denied reports whether the caller may not look. Many policies allow the lease table alone, and
// the other table is only a hint of old 3.x versions.
func denied(err error) bool { return awserr.DynamoDB.Of(err) == awserr.Caller }
