package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
)

// Stream is the identity of a stream. A stream that was deleted and created again under its old
// name is another stream, since its sequence numbers mean something else.
type Stream struct {
	Name    string
	Created time.Time // StreamCreationTimestamp, in milliseconds
}

// String returns "name@milliseconds".
func (s Stream) String() string {
	return fmt.Sprintf("%s@%d", s.Name, s.Created.UnixMilli())
}

// ErrStream is the error that every *StreamError matches.
var ErrStream = errors.New("the lease table belongs to another stream")

// StreamError is returned if a table holds the leases of a stream other than the one to be read.
// errors.Is(err, ErrStream) holds.
type StreamError struct {
	Table string
	Want  string // the stream to be read, as Stream.String gives it
	Have  string // the stream of the table
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("the lease table %s holds the positions of the stream %s, and this is %s "+
		"(name@creation in ms): use another application name, or delete the table if its "+
		"positions are no longer wanted", e.Table, e.Have, e.Want)
}

// Is reports whether target is ErrStream.
func (e *StreamError) Is(target error) bool { return target == ErrStream }

func (t *Table) streamError(have string) error {
	return &StreamError{Table: t.cfg.Table, Want: t.cfg.Stream.String(), Have: have}
}

// Origin is where reading begins in a shard that has no parent in the table.
type Origin struct {
	// Word is TRIM_HORIZON, LATEST or AT_TIMESTAMP; "" is TRIM_HORIZON.
	Word runnel.SequenceNumber
	// At is the time for LATEST (when it was first asked for) and AT_TIMESTAMP.
	At time.Time
}

// Claim is the table's record of its stream.
type Claim struct {
	// Origin is the position where the application began: the first worker's choice holds for all.
	Origin Origin
	// Synced is set once the leases of the shards at the origin have all been created.
	Synced bool
	// Shared is set if the table has leases and was not begun by this package. Java workers use
	// such a table, and it holds no item of ours; its leases carry the stream instead.
	Shared bool
}

// These name the item in which a table of our own stores its stream.
const (
	claimKey    = "runnelStream"
	claimEntity = "RUNNEL_STREAM"
	attrOrigin  = "runnelOrigin"
	attrSynced  = "runnelSynced"
)

// Claim binds the table to its stream, or returns the claim of an earlier worker. It returns a
// *StreamError if that worker claimed another stream or a recreated one, and ErrNative if the KCL
// 3.x runs the table in its own way. origin counts only in a new table.
func (t *Table) Claim(ctx context.Context, origin Origin) (Claim, error) {
	if err := t.refuseNative(ctx); err != nil {
		return Claim{}, err
	}
	row, err := t.claimItem(ctx)
	if err != nil || row != nil {
		return t.readClaim(row, err)
	}
	leases, _, err := t.List(ctx)
	if err != nil {
		return Claim{}, err
	}
	if len(leases) > 0 {
		// A table of our own has the item before it has leases, so look for the item once more.
		row, err := t.claimItem(ctx)
		if err != nil || row != nil {
			return t.readClaim(row, err)
		}
		return Claim{Origin: origin, Synced: true, Shared: true}, nil
	}
	answer := t.putClaim(ctx, origin)
	if answer == nil {
		return Claim{Origin: origin}, nil
	}
	row, err = t.claimItem(ctx) // another worker was first, or the answer was lost
	if err == nil && row == nil {
		err = t.wrap("claim", "", answer)
	}
	return t.readClaim(row, err)
}

// Synced records that the leases at the origin exist. It does nothing in a shared table.
func (t *Table) Synced(ctx context.Context, claim Claim) error {
	if claim.Shared || claim.Synced {
		return nil
	}
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.API.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(t.cfg.Table),
		Key:                      t.key(claimKey),
		ConditionExpression:      aws.String("#stream = :stream"),
		UpdateExpression:         aws.String("SET #synced = :synced"),
		ExpressionAttributeNames: map[string]string{"#stream": attrStream, "#synced": attrSynced},
		ExpressionAttributeValues: item{
			":stream": str(t.cfg.Stream.String()), ":synced": num(1),
		},
	})
	if err != nil {
		return t.wrap("claim", "", err)
	}
	return nil
}

func (t *Table) claimItem(ctx context.Context) (item, error) {
	row, err := t.getItem(ctx, t.cfg.Table, t.key(claimKey))
	if err != nil {
		return nil, t.wrap("claim", "", err)
	}
	return row, nil
}

func (t *Table) readClaim(row item, err error) (Claim, error) {
	if err != nil {
		return Claim{}, err
	}
	if have := text(row, attrStream); have != t.cfg.Stream.String() {
		return Claim{}, t.streamError(have)
	}
	r := reader{row: row}
	claim := Claim{
		Origin: Origin{Word: runnel.SequenceNumber(r.must(attrOrigin))},
		Synced: r.number(attrSynced, false) == 1,
	}
	if _, there := row[attrFrom]; there {
		claim.Origin.At = time.UnixMilli(r.number(attrFrom, true)).UTC()
	}
	if r.err != nil {
		return Claim{}, t.wrap("claim", claimKey, r.err)
	}
	return claim, nil
}

func (t *Table) putClaim(ctx context.Context, origin Origin) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	if origin.Word == "" {
		origin.Word = runnel.TrimHorizon
	}
	row := item{
		attrKey: str(claimKey), attrEntity: str(claimEntity),
		attrStream: str(t.cfg.Stream.String()), attrOrigin: str(string(origin.Word)),
	}
	if !origin.At.IsZero() {
		row[attrFrom] = num(origin.At.UnixMilli())
	}
	_, err := t.cfg.API.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(t.cfg.Table), Item: row,
		ConditionExpression:      aws.String("attribute_not_exists(#leaseKey)"),
		ExpressionAttributeNames: map[string]string{"#leaseKey": attrKey},
	})
	return err
}

// ErrNative is returned for a table of a KCL 3.x fleet that assigns the leases in its own way.
var ErrNative = errors.New("the lease table is run by KCL 3.x workers, whose leader assigns " +
	"the leases: use another application name, or run the Java fleet in its mode " +
	"COMPATIBLE_WITH_2X")

// migrationKey is the row in which KCL 3.x stores the mode of its fleet: in the lease table since
// 3.5, in a table of its own before (MigrationState).
const migrationKey = "Migration3.0"

func (t *Table) refuseNative(ctx context.Context) error {
	row, err := t.getItem(ctx, t.cfg.Table, t.key(migrationKey))
	if err != nil {
		return t.wrap("claim", "", err)
	}
	if row == nil {
		key := item{"key": str(migrationKey)}
		row, err = t.getItem(ctx, t.cfg.Table+"-CoordinatorState", key)
		var missing *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &missing) && !denied(err) {
			return t.wrap("claim", "", err)
		}
	}
	switch text(row, "cv") {
	case "CLIENT_VERSION_3X", "CLIENT_VERSION_3X_WITH_ROLLBACK":
		return t.wrap("claim", "", ErrNative)
	}
	return nil
}

// denied reports whether the caller may not look. Many policies allow the lease table alone, and the
// other table is only a hint of old 3.x versions.
func denied(err error) bool { return awserr.DynamoDB.Of(err) == awserr.Caller }
