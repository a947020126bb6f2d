package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Batch is consecutive records of one shard.
type Batch struct {
	Stream  string         // the stream's name
	ShardID runnel.ShardID // the shard of all the records
	// Records are in the shard's order; at least one. The handler may keep them.
	Records []runnel.Record
	// Gap is set if records before these may be missing, because the stream removed them, by its
	// retention period, before they were read. See Config.AllowGaps.
	Gap *sink.Gap
	// OnCommit may be set by the handler. It is called after the commit of the transaction, and not
	// at all if that fails. It must not block.
	OnCommit func()
}

// Handler makes the effects of a batch, in the transaction tx. It does not end the transaction. It
// is called for one batch of a shard at a time, in order, and for several shards at once.
//
// The same records may come again, also in batches that are cut differently: then the transaction
// of the call before has failed, and its effects are not there. An error should wrap that of the
// database, so that a serialization failure or a lost connection blames no record; see
// Dialect.Moment. ctx ends when the worker may no longer process the shard.
//
// In PostgreSQL a statement waits for a lock for Config.Failover at most. Give your own statements
// a time limit if the network may hang: the sink limits its own alone. In SQLite a statement whose
// context ends may roll the transaction back: return its error, and run no further statement.
type Handler func(ctx context.Context, tx *sql.Tx, batch *Batch) error

// Poison is the policy for records that the handler fails on again and again.
type Poison int

const (
	// Hold repeats the batch until the handler succeeds: no later record of the shard comes before.
	Hold Poison = iota
	// DeadLetter moves the failing records of a batch that has failed five times to the table
	// runnel_dead.
	DeadLetter
)

// Config configures a Sink. The zero value of an optional field means its default.
type Config struct {
	// DB is the database, and Dialect its SQL: Postgres() or SQLite(). Required.
	DB      *sql.DB
	Dialect Dialect
	// Client has the place of DB and Handler in a program that does not use database/sql. Package
	// pgxsink sets it.
	Client Client
	// App names the application in the table runnel_position. Give each set of tables that a
	// handler fills a name of its own; the name of the fleet's lease table is a good one. Required.
	App string
	// Handler makes the effects. Required.
	Handler Handler

	// Poison is the policy for records that cannot be processed; default Hold.
	Poison Poison
	// AllowGaps lets a shard go on behind records that the stream removed unread. The gap is in the
	// shard's row. Default: the shard stops with a *GapError.
	AllowGaps bool
	// Failover is how long a client may be silent within a transaction before the database ends it.
	// It should be that of the worker. Default 10 s, at least 100 ms.
	Failover time.Duration
	// Isolation is the level of the transactions. Default: the database's.
	Isolation sql.IsolationLevel
	// Every is the age at which progress without a record is committed. Default 5 s.
	Every time.Duration

	// Logger logs failed calls, for each shard at most once every 10 s. Default
	// slog.Default().
	Logger *slog.Logger
	// OnRetry is called when a batch, or a look at its outcome, is to be tried again, and OnDead
	// after the commit of each dead letter. They must not block. Calls come from several
	// goroutines.
	OnRetry func(Retry)
	OnDead  func(Dead)
}

// Retry is a failed attempt.
type Retry struct {
	ShardID runnel.ShardID // the shard of the batch
	Records int            // of the batch
	Err     error          // of the attempt
	Blamed  bool           // the handler has failed: the error is none of Dialect.Moment
	Since   time.Time      // the first failure
	Pause   time.Duration  // until the next attempt
}

// Dead is a record that was moved to runnel_dead.
type Dead struct {
	Record runnel.Record // as the handler got it
	Err    error         // of the handler
}

// GapError is returned by a writer where records are missing, unless Config.AllowGaps is set.
type GapError struct {
	App     string         // Config.App
	ShardID runnel.ShardID // the shard that stops
	Gap     sink.Gap       // where records are missing
}

func (e *GapError) Error() string {
	return fmt.Sprintf("shard %s of application %s stops at a gap: nothing between %s and %s, "+
		"where %s; records there are lost to the database: restore it from a later backup, or "+
		"allow gaps to go on without them", e.ShardID, e.App, e.Gap.After, e.Gap.Before,
		e.Gap.Reason)
}

const (
	defaultFailover = 10 * time.Second
	defaultEvery    = 5 * time.Second
	leastFailover   = 100 * time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.Client == nil {
		c.Client = databaseSQL{c.DB, c.Handler}
	}
	if c.Failover == 0 {
		c.Failover = defaultFailover
	}
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnRetry == nil {
		c.OnRetry = func(Retry) {}
	}
	if c.OnDead == nil {
		c.OnDead = func(Dead) {}
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("sqlsink: "+format, args...))
		}
	}
	own := c.Client == nil
	fault(own && c.DB == nil, "DB is missing: want a database of database/sql")
	fault(own && c.Handler == nil, "Handler is missing: want the function that makes the effects")
	fault(!own && (c.DB != nil || c.Handler != nil), "Client is set beside DB or Handler: want one")
	fault(c.Dialect.Read == "" || c.Dialect.Token == "" || c.Dialect.Insert == "" ||
		c.Dialect.Move == "" || c.Dialect.Moment == nil,
		"Dialect is missing: want Postgres(), SQLite() or one of your own")
	fault(c.App == "", "App is missing: want the application's name")
	fault(c.Poison < Hold || c.Poison > DeadLetter, "Poison is %d: want Hold or DeadLetter",
		int(c.Poison))
	fault(c.Failover != 0 && c.Failover < leastFailover, "Failover is %s: want %s or more",
		c.Failover, leastFailover)
	fault(c.Every < 0, "Every is %s: want 0 (the default) or more", c.Every)
	return errors.Join(faults...)
}
