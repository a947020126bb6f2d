package assign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
)

// API is what a Table needs of the DynamoDB client of the AWS SDK.
type API interface {
	lease.API
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
		*dynamodb.QueryOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput,
		...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config configures a Table. The zero value of an optional field means its default.
type Config struct {
	// API is the client; required. Its retries may be on or off: a write whose answer was lost
	// is recognised either way.
	API API
	// Table is the name of the DynamoDB table; required. It is made if it is not there.
	Table string
	// Space is the space of the keys; default all 2^128 hash keys. What the table was made with
	// holds, and another one is ErrOther.
	Space keyspace.Space
	// Interval is how often a Session renews itself and looks what is new, and how often a Move
	// looks how far it has come; default 1 s, from 1 ms to a tenth of Expiry.
	Interval time.Duration
	// Expiry is how long a Session may be silent before a Move takes its process for dead;
	// default 30 s. The session itself gives out nothing after half of that.
	Expiry time.Duration
	// CallTimeout is the time that one call may take; default 5 s.
	CallTimeout time.Duration

	logRows int64 // how many changes the table remembers; default logRows
}

// logRows is how far a process may be behind before it has to read the whole table.
const logRows = 1000

func (c Config) withDefaults() Config {
	defaultTo(&c.Interval, time.Second)
	defaultTo(&c.Expiry, 30*time.Second)
	defaultTo(&c.CallTimeout, 5*time.Second)
	defaultTo(&c.logRows, logRows)
	return c
}

func defaultTo[T time.Duration | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("assign: "+format, args...))
		}
	}
	fault(c.API == nil, "API is missing: want a *dynamodb.Client")
	fault(c.Table == "", "Table is missing: want the name of the table of names and keys")
	fault(c.Expiry < 10*time.Millisecond, "Expiry is %s: want 10ms or more", c.Expiry)
	fault(c.Interval < time.Millisecond || c.Interval > c.Expiry/10,
		"Interval is %s: want 1ms to a tenth of Expiry, %s", c.Interval, c.Expiry/10)
	fault(c.CallTimeout < 0, "CallTimeout is %s: want more than 0", c.CallTimeout)
	return errors.Join(faults...)
}
