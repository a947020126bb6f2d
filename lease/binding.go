package lease

import (
	"context"
	"errors"
	"fmt"
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

// Binding is the table's record of its stream.
type Binding struct {
	// Origin is where reading begins in a shard that has no parent in the table: the choice of the
	// application's first worker holds for all. LATEST is pinned to the time of that choice.
	Origin runnel.From
	// Synced is set once the leases of the shards at the origin have all been created.
	Synced bool
	// Shared is set if the table has leases and was not begun by this package. Java workers use
	// such a table, and it holds no item of ours; its leases carry the stream instead.
	Shared bool
}

// These name the item in which a table of our own stores its stream.
const (
	bindingKey    = "runnelStream"
	bindingEntity = "RUNNEL_STREAM"
	attrOrigin    = "runnelOrigin"
	attrSynced    = "runnelSynced"
)

// Bind binds the table to its stream, or returns the Binding of an earlier worker. It returns a
// *StreamError if that worker bound it to another stream or a recreated one, and ErrManagedByKCL3
// if the KCL 3.x runs the table in its own way. origin counts only in a new table;
// it cannot be a sequence number, which is of one shard.
func (t *Table) Bind(ctx context.Context, origin runnel.From) (Binding, error) {
	if n := origin.Sequence(); n != "" {
		return Binding{}, t.wrap("bind", "", fmt.Errorf("the origin is the sequence number %s: "+
			"want the oldest record, the latest or a time", n))
	}
	if err := t.refuseKCL3(ctx); err != nil {
		return Binding{}, err
	}
	row, err := t.bindingItem(ctx)
	if err != nil || row != nil {
		return t.readBinding(row, err)
	}
	leases, _, err := t.List(ctx)
	if err != nil {
		return Binding{}, err
	}
	if len(leases) > 0 {
		// A table of our own has the item before it has leases, so look for the item once more.
		row, err := t.bindingItem(ctx)
		if err != nil || row != nil {
			return t.readBinding(row, err)
		}
		return Binding{Origin: origin, Synced: true, Shared: true}, nil
	}
	answer := t.putBinding(ctx, origin)
	if answer == nil {
		return Binding{Origin: origin}, nil
	}
	row, err = t.bindingItem(ctx) // another worker was first, or the answer was lost
	if err == nil && row == nil {
		err = t.wrap("bind", "", answer)
	}
	return t.readBinding(row, err)
}

// MarkSynced records that the leases at the origin exist. It does nothing in a shared table.
func (t *Table) MarkSynced(ctx context.Context, bound Binding) error {
	if bound.Shared || bound.Synced {
		return nil
	}
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.DynamoDB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(t.cfg.Table),
		Key:                      t.key(bindingKey),
		ConditionExpression:      aws.String("#stream = :stream"),
		UpdateExpression:         aws.String("SET #synced = :synced"),
		ExpressionAttributeNames: map[string]string{"#stream": attrStream, "#synced": attrSynced},
		ExpressionAttributeValues: item{
			":stream": str(t.cfg.Stream.String()), ":synced": num(1),
		},
	})
	if err != nil {
		return t.wrap("bind", "", err)
	}
	return nil
}

func (t *Table) bindingItem(ctx context.Context) (item, error) {
	row, err := t.getItem(ctx, t.cfg.Table, t.key(bindingKey))
	if err != nil {
		return nil, t.wrap("bind", "", err)
	}
	return row, nil
}

func (t *Table) readBinding(row item, err error) (Binding, error) {
	if err != nil {
		return Binding{}, err
	}
	if have := text(row, attrStream); have != t.cfg.Stream.String() {
		return Binding{}, t.streamError(have)
	}
	r := reader{row: row}
	bound := Binding{
		Origin: r.origin(),
		Synced: r.number(attrSynced, false) == 1,
	}
	if r.err != nil {
		return Binding{}, t.wrap("bind", bindingKey, r.err)
	}
	return bound, nil
}

// origin reads the origin: its word and its time.
func (r *reader) origin() runnel.From {
	var at time.Time
	if _, there := r.row[attrFrom]; there {
		at = time.UnixMilli(r.number(attrFrom, true)).UTC()
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

func (t *Table) putBinding(ctx context.Context, origin runnel.From) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	row := item{
		attrKey: str(bindingKey), attrEntity: str(bindingEntity),
		attrStream: str(t.cfg.Stream.String()), attrOrigin: str(string(origin.Word())),
	}
	if at := origin.Time(); !at.IsZero() {
		row[attrFrom] = num(at.UnixMilli())
	}
	_, err := t.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(t.cfg.Table), Item: row,
		ConditionExpression:      aws.String("attribute_not_exists(#leaseKey)"),
		ExpressionAttributeNames: map[string]string{"#leaseKey": attrKey},
	})
	return err
}

// ErrManagedByKCL3 is returned for a table of a KCL 3.x fleet that assigns the leases in its own
// way.
var ErrManagedByKCL3 = errors.New("the lease table is run by KCL 3.x workers, whose " +
	"leader assigns the leases: use another application name, or run the Java fleet in its mode " +
	"COMPATIBLE_WITH_2X")

// migrationKey is the row in which KCL 3.x stores the mode of its fleet: in the lease table since
// 3.5, in a table of its own before (MigrationState).
const migrationKey = "Migration3.0"

func (t *Table) refuseKCL3(ctx context.Context) error {
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
