package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/dynamotable"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// DynamoDBAPI is the part of the AWS SDK's DynamoDB client that a Store uses.
type DynamoDBAPI interface {
	dynamotable.DynamoDBAPI
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.PutItemOutput, error)
}

// Config configures a Store. The zero value of an optional field means its default.
type Config struct {
	// DynamoDB is the client; required. Its retries may be on or off.
	DynamoDB DynamoDBAPI
	// Table is the table's name; required. The table of bad records has "_bad" behind it.
	Table string
	// CallTimeout is the time that one call may take; default 5 s.
	CallTimeout time.Duration
}

const (
	badSuffix      = "_bad"
	defaultTimeout = 5 * time.Second
	parallelReads  = 16 // GetItem calls of one Read
)

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("dynamostore: "+format, args...))
		}
	}
	fault(c.DynamoDB == nil, "DynamoDB is missing: want a *dynamodb.Client")
	fault(c.Table == "", "Table is missing: want the name of the table of rows")
	for _, name := range []string{c.Table, c.Table + badSuffix} {
		if err := dynamotable.CheckName(name); c.Table != "" && err != nil {
			fault(true, "Table: %v", err)
			break
		}
	}
	fault(c.CallTimeout < 0, "CallTimeout is %s: want 0 (for 5 s) or more", c.CallTimeout)
	return errors.Join(faults...)
}

// Store is a rollup.RowStore in DynamoDB.
type Store struct {
	cfg        Config
	definition rollup.Definition
}

// New returns a store. It makes no call.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = defaultTimeout
	}
	return &Store{cfg: cfg}, nil
}

// String implements rollup.RowStore.
func (s *Store) String() string { return "the DynamoDB table " + s.cfg.Table }

// Read implements rollup.RowStore, by consistent reads. It makes several calls at once: the part of
// DynamoDB that `runnel serve` has lacks BatchGetItem.
func (s *Store) Read(ctx context.Context, keys []string) ([]rollup.StoredRow, error) {
	rows := make([]rollup.StoredRow, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, key := range keys {
		group.Go(func() error {
			found, err := s.get(ctx, key)
			if err == nil && found != nil {
				rows[i], err = decode(s.definition, found)
			}
			if err != nil {
				return fmt.Errorf("read row %q: %w", key, err)
			}
			return nil
		})
	}
	return rows, group.Wait()
}

func (s *Store) get(ctx context.Context, key string) (item, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	out, err := s.cfg.DynamoDB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.cfg.Table, Key: item{attrKey: str(key)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, classify(err)
	}
	return out.Item, nil
}

// Write implements rollup.RowStore.
func (s *Store) Write(ctx context.Context, row rollup.StoredRow, over int64) error {
	in := &dynamodb.PutItemInput{TableName: &s.cfg.Table, Item: encode(s.definition, &row)}
	if over == 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(#key)")
		in.ExpressionAttributeNames = map[string]string{"#key": attrKey}
	} else {
		in.ConditionExpression = aws.String("#version = :over")
		in.ExpressionAttributeNames = map[string]string{"#version": attrVersion}
		in.ExpressionAttributeValues = item{":over": num(strconv.FormatInt(over, 10))}
	}
	return s.put(ctx, in)
}

func (s *Store) put(ctx context.Context, in *dynamodb.PutItemInput) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	_, err := s.cfg.DynamoDB.PutItem(ctx, in)
	if _, failed := awserr.ConditionFailed(err); failed {
		return rollup.ErrConflict
	}
	return classify(err)
}

// classify wraps an error with rollup.ErrLasting if another call would fail, too.
func classify(err error) error {
	if err == nil || errors.Is(err, rollup.ErrLasting) || awserr.DynamoDB.Transient(err) {
		return err
	}
	return rollup.Lasting(err)
}

// Prepare implements rollup.RowStore.
func (s *Store) Prepare(ctx context.Context, setup rollup.Setup) error {
	s.definition = setup.Definition.WithDefaults()
	keep, err := setup.Agree(ctx, s.kept)
	if err != nil {
		return s.otherKey(ctx, err)
	}
	if err := s.makeTables(ctx); err != nil || !keep {
		return err
	}
	err = s.put(ctx, &dynamodb.PutItemInput{
		TableName: &s.cfg.Table, Item: item{
			attrKey: str(rollup.SetupKey), attrApp: str(setup.App), attrStream: str(setup.Stream),
			attrDefinition: str(setup.Definition.String()),
		},
		ConditionExpression:      aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames: map[string]string{"#key": attrKey},
	})
	if errors.Is(err, rollup.ErrConflict) { // another worker was first
		if keep, err = setup.Agree(ctx, s.kept); keep {
			err = errUnseen
		}
	}
	return err
}

// errUnseen means that another worker has kept a setup that cannot be read yet.
var errUnseen = errors.New("the setup that another worker has kept is not there yet")

// kept returns the setup in the table; none if there is no table.
func (s *Store) kept(ctx context.Context) (rollup.KeptSetup, error) {
	found, err := s.get(ctx, rollup.SetupKey)
	if awserr.DynamoDB.Of(err) == awserr.Missing {
		return rollup.KeptSetup{}, nil
	}
	return rollup.KeptSetup{
		App: text(found, attrApp), Stream: text(found, attrStream),
		Definition: text(found, attrDefinition),
	}, err
}

func (s *Store) makeTables(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx) // AWS takes some 10 s for each
	for _, name := range []string{s.cfg.Table, s.cfg.Table + badSuffix} {
		group.Go(func() error { return s.ensure(ctx, name) })
	}
	return group.Wait()
}

// ensure makes a table that is missing. A table with another key is an error.
func (s *Store) ensure(ctx context.Context, name string) error {
	table := dynamotable.Table{
		DynamoDB: s.cfg.DynamoDB, Name: name, CallTimeout: s.cfg.CallTimeout,
		Key: []dynamotable.Attribute{{Name: attrKey, Type: types.ScalarAttributeTypeS}},
	}
	err := table.Ensure(ctx)
	if errors.Is(err, dynamotable.ErrOtherKey) {
		err = rollup.Lasting(fmt.Errorf("%w than %q (S): use another table", err, attrKey))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, classify(err))
	}
	return nil
}

// otherKey returns the error of a table that cannot be read: that it has another key, if it has.
func (s *Store) otherKey(ctx context.Context, unread error) error {
	if awserr.DynamoDB.Of(unread) != awserr.Record {
		return unread
	}
	if err := s.ensure(ctx, s.cfg.Table); errors.Is(err, dynamotable.ErrOtherKey) {
		return err // the table is there, since a missing one is another error
	}
	return unread
}
