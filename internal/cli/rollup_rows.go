package cli

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
	"github.com/runnel-stream/runnel/sink/rollup/mongostore"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// toRows lets the worker write to the table of --dynamodb or the collection of --mongodb. end ends
// the command with an error.
func (f *rollupFlags) toRows(
	ctx context.Context, worker *consumer.Config, of rollup.Definition, counts *rollupCounts,
	end context.CancelCauseFunc,
) (closeDB func(), err error) {
	store, disconnect, err := f.store(ctx, worker)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			disconnect()
		}
	}()
	cfg := rollup.RowsConfig{
		Definition: of, Store: store, Kinesis: worker.Kinesis, Leases: worker.DynamoDB,
		App: worker.App, Stream: f.stream, TTL: f.ttl, Bad: f.policy(), OnCommit: counts.committed,
	}
	if err := cfg.Validate(); err != nil {
		return nil, exit.Usage("%w", err)
	}
	limit := rowsPatience
	if f.dynamodb != "" {
		limit = tablesPatience
	}
	opening, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	rows, err := openRows(opening, cfg)
	switch {
	case errors.Is(err, rollup.ErrOtherSetup):
		return nil, exit.Usage("%w", err)
	case err != nil && f.mongodb != "":
		return nil, databaseError(err, "--mongodb")
	case err != nil:
		return nil, exit.Outside(endpoint.Hint(err, f.stream))
	}
	if !f.allowGaps {
		worker.OnGap = func(shard runnel.ShardID, gap sink.Gap) error {
			err := &sqlsink.GapError{App: cfg.App, ShardID: shard, Gap: gap}
			end(finalOf(err))
			return err
		}
	}
	worker.Output = rows.Output()
	worker.Handler = func(ctx context.Context, batch *consumer.Batch) error {
		err := rows.Handle(ctx, batch)
		if err != nil {
			counts.retries.Add(1)
		}
		switch final := finalOf(err); {
		case final != nil:
			end(final)
		case f.once && errors.Is(err, rollup.ErrLasting):
			end(exit.Outside(err)) // the shard has no end
		}
		return err
	}
	return disconnect, nil
}

// openRows opens the rows. It tries again while the store fails or gives no answer, at most for
// rowsPatience: OpenRows gives up when one call has hung for 5 s.
func openRows(ctx context.Context, cfg rollup.RowsConfig) (*rollup.Rows, error) {
	pauses := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	start := time.Now()
	for failures := 1; ; failures++ {
		rows, err := rollup.OpenRows(ctx, cfg)
		if err == nil || errors.Is(err, rollup.ErrLasting) || time.Since(start) > rowsPatience ||
			pauses.Wait(ctx, failures) != nil {
			return rows, err
		}
	}
}

// These are for how long the start waits for the database, which may be starting. AWS takes some 10
// s to make a table of DynamoDB.
const (
	rowsPatience   = 12 * time.Second
	tablesPatience = time.Minute
)

// mongoSelection is for how long the driver looks for a server. Its own 30 s would hide an outage
// from the log.
const mongoSelection = 5 * time.Second

// store returns the store of the rows.
func (f *rollupFlags) store(
	ctx context.Context, worker *consumer.Config,
) (rollup.RowStore, func(), error) {
	if f.dynamodb != "" {
		api, ok := worker.DynamoDB.(dynamostore.DynamoDBAPI)
		if !ok {
			return nil, nil, errors.New("the client of DynamoDB lacks an operation")
		}
		store, err := dynamostore.New(dynamostore.Config{DynamoDB: api, Table: f.dynamodb})
		if err != nil {
			return nil, nil, exit.Usage("--dynamodb: %w", err)
		}
		return store, func() {}, nil
	}
	parsed, err := connstring.Parse(f.mongodb) // checkPlace has accepted it
	if err != nil {
		return nil, nil, exit.Usage("--mongodb: %w", err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(f.mongodb).
		SetServerSelectionTimeout(mongoSelection))
	if err != nil {
		return nil, nil, exit.Usage("--mongodb: %w", err)
	}
	closeDB := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx) // nothing is under way
	}
	store, err := mongostore.New(mongostore.Config{
		Database: client.Database(parsed.Database), Collection: f.collection,
	})
	if err != nil {
		closeDB()
		return nil, nil, exit.Usage("--collection: %w", err)
	}
	return store, closeDB, nil
}
