package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/runnel-stream/runnel/producer"
)

// Config configures a Relay. DB and Producer are required. The zero value of every other field
// means its default.
type Config struct {
	// DB is the database with the table.
	DB DB
	// Table is the outbox table. Default: the one that Migrate makes.
	Table Table
	// Producer configures the producer that puts the rows. Its Order must be OrderKey, the default.
	// Journal, Resume, GiveUpAfter and OnResult must not be set: the relay sets them. Reader is
	// set to Kinesis if it is nil; without one that can read, units of unknown outcome could not be
	// looked up after an outage, and their keys would be held.
	//
	// MaxBufferedRecords and MaxBufferedBytes (default 100,000 and 64 MiB) bound the rows that were
	// read and are not deleted yet.
	Producer producer.Config
	// Failover is how long a relay may be silent before another takes over. All relays of a table
	// should have the same. Default 10 s; at least 100 ms.
	Failover time.Duration
	// Owner names the relay in the lease and in logs. Default: the host's name and the process id.
	Owner string
	// DeadLetter moves rows that cannot be put to the table of dead letters, and their keys go on.
	// By default such a row holds its key.
	DeadLetter bool
	// Once ends Run when everything that was in the table at its start is in the stream.
	Once bool
	// Logger gets take-overs, outages of the database, held keys and inversions. Default
	// slog.Default().
	Logger *slog.Logger
}

const (
	defaultFailover = 10 * time.Second
	defaultRows     = 100_000
	defaultBytes    = 64 << 20
)

func (c Config) withDefaults() Config {
	c.Table = c.Table.withDefaults()
	c.Failover = cmp.Or(c.Failover, defaultFailover)
	c.Producer.MaxBufferedRecords = cmp.Or(c.Producer.MaxBufferedRecords, defaultRows)
	c.Producer.MaxBufferedBytes = cmp.Or(c.Producer.MaxBufferedBytes, defaultBytes)
	if c.Owner == "" {
		host, _ := os.Hostname() // only a name
		c.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Producer.Logger == nil {
		c.Producer.Logger = c.Logger
	}
	if reader, ok := c.Producer.Kinesis.(producer.Reader); ok && c.Producer.Reader == nil {
		c.Producer.Reader = reader
	}
	return c
}

// Validate returns nil, or an error with one sentence for each field that is out of its range.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("outbox: "+format, args...))
		}
	}
	p := &c.Producer
	fault(c.DB == nil, "DB is missing: want Postgres or SQLite")
	fault(p.Order != producer.OrderKey, "Producer.Order is %v: want OrderKey", p.Order)
	fault(p.Journal != nil, "Producer.Journal is set: the relay has its own")
	fault(len(p.Resume) > 0, "Producer.Resume is set: the relay resumes the units of its journal")
	fault(p.OnResult != nil, "Producer.OnResult is set: the results are those of the table's rows")
	fault(p.GiveUpAfter != 0, "Producer.GiveUpAfter is %v: want 0, since a row that is given up "+
		"would be lost", p.GiveUpAfter)
	fault(p.Kinesis != nil && p.Reader == nil, "Producer.Reader is missing, and Kinesis "+
		"cannot read: want the client, which looks up units after an outage")
	fault(c.Failover < 100*time.Millisecond, "Failover is %s: want 100ms or more", c.Failover)
	if c.DB != nil {
		if err := c.Table.fits(c.DB.dialect()); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(append(faults, c.Table.Validate(), p.Validate())...)
}

// producerReserves is 1 divided by the part of the producer's buffer that is reserved for one of
// its groups (package producer, "Groups").
const producerReserves = 32

// producer returns the configuration of the producer. The reserve of each of its groups is the
// whole of the relay's bounds. So a Put never waits for room, and the rows of a slow shard never
// keep the reader from those of others.
func (c Config) producer() producer.Config {
	p := c.Producer
	p.MaxBufferedRecords = min(producerReserves*p.MaxBufferedRecords, 100_000_000)
	p.MaxBufferedBytes = min(producerReserves*(p.MaxBufferedBytes+largestRecord), 1<<40)
	return p
}

const largestRecord = 10 << 20 // of any stream (AWS, "UpdateMaxRecordSize")
