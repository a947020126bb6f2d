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
	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// DynamoDBAPI is the part of the AWS SDK's DynamoDB client that a Table uses.
type DynamoDBAPI interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.DescribeTableOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.PutItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.DeleteItemOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (
		*dynamodb.ScanOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
		*dynamodb.QueryOutput, error)
	UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateTableOutput, error)
}

var (
	// ErrLeaseLost is returned if another worker has changed the row since the writer last saw it:
	// it took, released or deleted the lease. A Take also returns it if the owner is alive after
	// all. Nothing was written.
	ErrLeaseLost = errors.New("the lease has changed hands")
	// ErrRowDeleted is ErrLeaseLost if the row is gone.
	ErrRowDeleted = fmt.Errorf("%w: its row was deleted", ErrLeaseLost)
	// ErrLeaseNotFound is returned by Get for a lease that is not in the table.
	ErrLeaseNotFound = errors.New("no such lease")
	// ErrTableNotFound is returned if the table does not exist, or no longer.
	ErrTableNotFound = errors.New("there is no such table")
)

// Config configures a Table.
type Config struct {
	// DynamoDB is the client; required. Its retries may be on or off: if the answer of a write was
	// lost, the Table recognises its write either way.
	DynamoDB DynamoDBAPI
	// Table is the table's name, the KCL's application name; required.
	Table string
	// Stream is the stream of the leased shards; required. Rows are stamped with it.
	Stream Stream
	// CallTimeout is the time that one call may take; default 5 s.
	CallTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.CallTimeout == 0 {
		c.CallTimeout = 5 * time.Second
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("lease: "+format, args...))
		}
	}
	fault(c.DynamoDB == nil, "DynamoDB is missing: want a *dynamodb.Client")
	fault(c.Table == "", "Table is missing: want the application's name, which names the table")
	if err := dynamotable.CheckName(c.Table); c.Table != "" && err != nil {
		fault(true, "Table: %v", err)
	}
	fault(c.Stream.Name == "", "Stream.Name is missing: want the name of the leased stream")
	fault(c.CallTimeout < 0, "CallTimeout is %s: want 0 (for 5 s) or more", c.CallTimeout)
	return errors.Join(faults...)
}

// Table is a lease table. It has no state and is safe for concurrent use, but a holder must make
// its writes to one lease one after the other.
type Table struct {
	cfg   Config
	times *Times // nil: rows without a time are read as they are
}

// New returns the table of a configuration. It makes no call; see Ensure and Bind.
func New(cfg Config) (*Table, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Table{cfg: cfg.withDefaults()}, nil
}

// Name returns the table's name.
func (t *Table) Name() string { return t.cfg.Table }

func (t *Table) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.cfg.CallTimeout)
}

func (t *Table) key(id runnel.ShardID) item { return item{attrKey: str(string(id))} }

func (t *Table) wrap(op string, id runnel.ShardID, err error) error {
	if awserr.DynamoDB.Of(err) == awserr.Missing {
		err = fmt.Errorf("%w: %w", ErrTableNotFound, err)
	}
	if id == "" {
		return fmt.Errorf("%s: lease table %s: %w", op, t.cfg.Table, err)
	}
	return fmt.Errorf("%s: lease %s in table %s: %w", op, id, t.cfg.Table, err)
}

// Get reads one lease with a consistent read. It returns ErrLeaseNotFound if the lease does not
// exist.
func (t *Table) Get(ctx context.Context, id runnel.ShardID) (Lease, error) {
	return t.get(ctx, id, true)
}

// Glance is Get with an eventually consistent read, for half the read units.
func (t *Table) Glance(ctx context.Context, id runnel.ShardID) (Lease, error) {
	return t.get(ctx, id, false)
}

func (t *Table) get(ctx context.Context, id runnel.ShardID, consistent bool) (Lease, error) {
	row, err := t.readItem(ctx, t.cfg.Table, t.key(id), consistent)
	if err != nil {
		return Lease{}, t.wrap("read", id, err)
	}
	if row == nil {
		return Lease{}, t.wrap("read", id, ErrLeaseNotFound)
	}
	l, err := t.read(row)
	if err != nil {
		return Lease{}, t.wrap("read", id, err)
	}
	return l, nil
}

// getItem returns an item of a table, nil if it is not there.
func (t *Table) getItem(ctx context.Context, table string, key item) (item, error) {
	return t.readItem(ctx, table, key, true)
}

func (t *Table) readItem(
	ctx context.Context, table string, key item, consistent bool,
) (item, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	out, err := t.cfg.DynamoDB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(consistent),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}
