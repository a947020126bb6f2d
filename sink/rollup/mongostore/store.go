package mongostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/runnel-stream/runnel/sink/rollup"
)

// Config configures a Store. The zero value of an optional field means its default.
type Config struct {
	// Database has the collections; required. The Store sets its own read and write concerns.
	Database *mongo.Database
	// Collection is the collection's name; required. That of bad records has "_bad" behind it.
	Collection string
	// CallTimeout is the time that one call may take; default 5 s.
	CallTimeout time.Duration
}

const (
	badSuffix      = "_bad"
	defaultTimeout = 5 * time.Second
)

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("mongostore: "+format, args...))
		}
	}
	fault(c.Database == nil, "Database is missing: want a *mongo.Database")
	fault(c.Collection == "", "Collection is missing: want the name of the collection of rows")
	fault(c.CallTimeout < 0, "CallTimeout is %s: want 0 (for 5 s) or more", c.CallTimeout)
	return errors.Join(faults...)
}

// Store is a rollup.RowStore in MongoDB.
type Store struct {
	rows, bad  *mongo.Collection
	timeout    time.Duration
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
	durable := writeconcern.Majority()
	durable.Journal = new(true)
	concerns := options.Collection().SetWriteConcern(durable).
		SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary())
	return &Store{
		rows:    cfg.Database.Collection(cfg.Collection, concerns),
		bad:     cfg.Database.Collection(cfg.Collection+badSuffix, concerns),
		timeout: cfg.CallTimeout,
	}, nil
}

// String implements rollup.RowStore.
func (s *Store) String() string {
	return "the MongoDB collection " + s.rows.Database().Name() + "." + s.rows.Name()
}

// Read implements rollup.RowStore.
func (s *Store) Read(ctx context.Context, keys []string) ([]rollup.StoredRow, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	in := bson.D{{Key: "$in", Value: keys}}
	cursor, err := s.rows.Find(ctx, bson.D{{Key: fieldID, Value: in}})
	if err != nil {
		return nil, classify(err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil {
		return nil, classify(err)
	}
	byKey := make(map[string]rollup.StoredRow, len(found))
	for _, document := range found {
		row, err := decode(s.definition, document)
		if err != nil {
			return nil, fmt.Errorf("read row %s: %w", document.Lookup(fieldID), err)
		}
		byKey[row.Key] = row
	}
	rows := make([]rollup.StoredRow, len(keys))
	for i, key := range keys {
		rows[i] = byKey[key]
	}
	return rows, nil
}

// Write implements rollup.RowStore.
func (s *Store) Write(ctx context.Context, row rollup.StoredRow, over int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	document := encode(s.definition, &row)
	if over == 0 {
		_, err := s.rows.InsertOne(ctx, document)
		if mongo.IsDuplicateKeyError(err) {
			return rollup.ErrConflict
		}
		return classify(err)
	}
	as := bson.D{{Key: fieldID, Value: row.Key}, {Key: fieldVersion, Value: over}}
	result, err := s.rows.ReplaceOne(ctx, as, document)
	switch {
	case err != nil:
		return classify(err)
	case result.MatchedCount == 0:
		return rollup.ErrConflict
	}
	return nil
}

// classify wraps an error with rollup.ErrLasting if another call would fail, too. Only an error of
// the server is lasting, and none that it calls one of the moment: a change of its primary, or a
// majority that is late. The driver's own errors are about the connection.
func classify(err error) error {
	answer, ok := errors.AsType[mongo.ServerError](err)
	if !ok || mongo.IsNetworkError(err) || mongo.IsTimeout(err) ||
		answer.HasErrorLabel("RetryableWriteError") {
		return err
	}
	if write, ok := errors.AsType[mongo.WriteException](err); ok && len(write.WriteErrors) == 0 {
		return err // the write concern failed: the write may have taken effect
	}
	for _, code := range momentary {
		if answer.HasErrorCode(code) {
			return err
		}
	}
	return rollup.Lasting(err)
}

// momentary are the codes of a changing primary, which the driver labels for writes alone
// (MongoDB's specification "Retryable Reads").
var momentary = []int{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

// Prepare implements rollup.RowStore.
func (s *Store) Prepare(ctx context.Context, setup rollup.Setup) error {
	s.definition = setup.Definition.WithDefaults()
	keep, err := setup.Agree(ctx, s.kept)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if setup.Expires {
		_, err := s.rows.Indexes().CreateOne(ctx, mongo.IndexModel{
			Keys:    bson.D{{Key: fieldExpires, Value: 1}},
			Options: options.Index().SetExpireAfterSeconds(0),
		})
		if err != nil {
			return fmt.Errorf("make the index of %q: %w", fieldExpires, classify(err))
		}
	}
	if !keep {
		return nil
	}
	_, err = s.rows.InsertOne(ctx, bson.D{
		{Key: fieldID, Value: rollup.SetupKey},
		{Key: fieldApp, Value: setup.App},
		{Key: fieldStream, Value: setup.Stream},
		{Key: fieldDefinition, Value: setup.Definition.String()},
	})
	if mongo.IsDuplicateKeyError(err) { // another worker was first
		if keep, err = setup.Agree(ctx, s.kept); keep {
			err = errUnseen
		}
		return err
	}
	return classify(err)
}

// errUnseen means that another worker has kept a setup that a majority does not have yet.
var errUnseen = errors.New("the setup that another worker has kept is not there yet")

// kept returns the setup in the collection.
func (s *Store) kept(ctx context.Context) (found rollup.KeptSetup, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = s.rows.FindOne(ctx, bson.D{{Key: fieldID, Value: rollup.SetupKey}}).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return rollup.KeptSetup{}, nil
	}
	return found, classify(err)
}
