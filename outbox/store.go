package outbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// store is the relay's view of a database. All that differs between databases is behind it.
//
// A method without a fence only reads, or is a command of the user. A method with one changes the
// database in one transaction, and only if the fence is still valid.
type store interface {
	// claim takes the lease if no other owner has it, and otherwise returns the lease as it is.
	claim(ctx context.Context, c claim) (lease, error)
	// renew raises the epoch of the owner's lease. All transactions of the old epoch then have
	// either ended or never will commit. It may be repeated.
	renew(ctx context.Context, f fence) (fence, error)
	// beat says that the owner is alive.
	beat(ctx context.Context, f fence, inversions int64) error
	// leave gives the lease up.
	leave(ctx context.Context, f fence) error
	// commit makes a change, as a whole or not at all. Rows that are no longer as they were read
	// stay.
	commit(ctx context.Context, f fence, c *change) error

	// open returns the units of the journal in the order in which they were frozen.
	open(ctx context.Context) ([]openUnit, error)
	// rows returns the rows with these ids that exist, by their ids.
	rows(ctx context.Context, ids []int64) (map[int64]row, error)
	// secure returns when everything that was read before is durable. Writers may commit without
	// waiting for that (PostgreSQL, synchronous_commit = off); a crash then takes rows back, and
	// may give their ids to other ones.
	secure(ctx context.Context) error
	// window returns rows in the order of their ids.
	window(ctx context.Context, w window) (page, error)
	// ofKeys returns rows of some keys, in the order of their ids within a key.
	ofKeys(ctx context.Context, places []place, most limits) (page, error)
	// ids returns rows without their data, in the order of their ids.
	ids(ctx context.Context, w window) ([]row, error)
	// held returns the held keys.
	held(ctx context.Context) ([]HeldKey, error)
	// release removes a held key. With skip its refused rows become dead letters. It returns false
	// if the key is not held.
	release(ctx context.Context, key string, skip bool) (bool, error)
	// status returns the numbers of the table, without the ages.
	status(ctx context.Context) (Status, error)
	// ages returns the age of the oldest row and of the oldest transaction: see Status.
	ages(ctx context.Context) (row, transaction time.Duration, err error)
	// columns returns the types of the table's columns by their names; none without the table.
	columns(ctx context.Context) (map[string]string, error)
	// rights returns an error if a right is missing that a relay needs on the tables.
	rights(ctx context.Context) error
	// exec carries statements out.
	exec(ctx context.Context, statements []string) error
	// close closes the store's own connections, not the database.
	close()
}

// errLost means that the fence is not valid any more: another relay has the lease, or the database
// is a copy of the one in which the lease was taken.
var errLost = errors.New("another relay has taken the lease over")

// errUndeletable means that the database has reported the deletion of rows that are still there.
var errUndeletable = fmt.Errorf("%w: a trigger, a rule or a policy keeps them", ErrStuck)

// errMoved means that the database has begun a new timeline.
var errMoved = errors.New("the database has failed over or was restored")

// fence is one ownership of the lease.
type fence struct {
	owner    string
	epoch    int64
	timeline string // PostgreSQL's; "" if it is unknown
}

// claim is a wish for the lease.
type claim struct {
	owner, before string // the new owner, and the same program's owner of before
	failover      time.Duration
	stream        string
	created       int64 // the stream's creation, in milliseconds since 1970
}

// lease is the state of a lease after a claim.
type lease struct {
	taken      bool // by this claim
	fence      fence
	owner      string // the present owner, if it was not taken
	stream     string // "" if no relay has ever had it
	created    int64
	inversions int64
}

// row is a row of the table.
type row struct {
	id            int64
	key, hash     string
	data          []byte
	noKey, noData bool // the column is null, or in SQLite no text
	// version distinguishes rows that have had the same id: ids are drawn again after a TRUNCATE …
	// RESTART IDENTITY, or when an old copy of the table was restored. It is xmin; SQLite has the
	// checksum of the record.
	version uint32
}

// rowID names one row.
type rowID struct {
	id      int64
	version uint32
	sum     uint32 // the checksum of key, hash key and data
}

// size returns the bytes of a row that count for the bounds.
func (r *row) size() int { return len(r.data) + len(r.key) }

// limits bounds a read.
type limits struct {
	rows, bytes int   // after so many bytes no further row is kept
	until       int64 // the highest id; 0: no bound
}

// window is a part of the table.
type window struct {
	after int64 // the ids are higher
	most  limits
	skip  []string // these keys are left out
	known []int64  // and these rows
	top   bool     // page.top is wanted
}

// page is the result of a read.
type page struct {
	rows []row
	full bool  // there may be more
	top  int64 // the highest id at that moment
	// All transactions with an id below xmin had ended when the rows were read, and all with an id
	// from next on got it later.
	xmin, next uint64
	// generation changes when ids may be drawn again: after a TRUNCATE or another rewrite of the
	// table, in SQLite when the counter of AUTOINCREMENT was set back.
	generation int64
	// durable is set if a crash of the database cannot lose the rows any more: see store.secure.
	durable bool
}

// place is a position among the rows of a key.
type place struct {
	key  string
	from int64 // the lowest id
}

// change has the changes of a transaction.
type change struct {
	closed  []unitID   // units to remove from the journal
	opened  []openUnit // units to add to it
	deleted []sentRows // units that are in the stream
	held    []HeldKey  // keys to hold
	dead    []deadRow  // rows to move to the dead letters
}

func (c *change) empty() bool {
	return len(c.closed)+len(c.opened)+len(c.deleted)+len(c.held)+len(c.dead) == 0
}

// checksum returns the checksum of a row's record.
func checksum(r *row) uint32 {
	sum := crc32.Checksum([]byte(r.key), castagnoli)
	sum = crc32.Update(sum, castagnoli, []byte{0})
	sum = crc32.Update(sum, castagnoli, []byte(r.hash))
	return crc32.Update(sum, castagnoli, r.data)
}

// sentRows are the rows of a unit that is in the stream. They are deleted together with the unit's
// row in the journal.
type sentRows struct {
	unit unitID
	rows []rowID
}

// rows returns all rows that a change deletes, without those that become dead letters.
func (c *change) rows() (rows []rowID) {
	for i := range c.deleted {
		rows = append(rows, c.deleted[i].rows...)
	}
	return rows
}

// closing returns all units that a change removes from the journal.
func (c *change) closing() []unitID {
	units := slices.Clone(c.closed)
	for i := range c.deleted {
		units = append(units, c.deleted[i].unit)
	}
	return units
}

// unitID names a unit.
type unitID struct {
	producer aggregate.ProducerID
	number   uint64
}

// openUnit is a unit in the journal.
type openUnit struct {
	unitID
	low                uint64
	key, hash          string
	ids                []int64
	crc                uint32
	frozenNS, serverNS int64
	bootID             string
	bootNS             int64
}

// setProducer sets the producer from its text in the journal.
func (u *openUnit) setProducer(text string) error {
	id, err := hex.DecodeString(text)
	if err != nil || len(id) != len(u.producer) {
		return fmt.Errorf("the journal has the producer id %q: want 16 bytes", text)
	}
	copy(u.producer[:], id)
	return nil
}

// deadRow is a row that becomes a dead letter.
type deadRow struct {
	rowID

	key, reason string
}

// HeldKey is a held partition key: one of its rows cannot be put, and so its rows wait.
type HeldKey struct {
	Key    string    // the partition key; "" also for rows without a key
	Reason string    // why
	IDs    []int64   // the rows that cannot be put; those behind them wait
	Since  time.Time // by the database's clock
}

// Status has the numbers of a table and its relay.
type Status struct {
	Rows       int64         // rows in the table, at most 1,000,000 are counted
	Oldest     time.Duration // the age of the oldest row; negative without a column created_at
	Journal    int64         // units in the journal
	Held       int64         // held keys
	Dead       int64         // dead letters
	Inversions int64         // rows that were put behind a later row of their key
	Owner      string        // the relay that has the lease; "" for none
	Seen       time.Duration // since the owner's last heartbeat, by the database's clock
	Stream     string        // the stream's name, once a relay has run
	// OldestTransaction is the age of the oldest open transaction that may hold up the removal of
	// deleted rows; 0 for none, negative if the role lacks the rights of pg_read_all_stats.
	OldestTransaction time.Duration
}

// open returns the store of a database whose statements may take so long. SQLite has no time-out:
// its statements do not go over a network.
func open(ctx context.Context, db DB, table Table, timeout time.Duration) (store, error) {
	switch db := db.(type) {
	case postgresDB:
		return newPostgresStore(ctx, db.pool, table, timeout)
	case sqliteDB:
		return newSQLiteStore(ctx, db.db, table)
	}
	return nil, errDialect
}
