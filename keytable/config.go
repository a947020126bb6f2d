package keytable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/lease"
)

// DynamoDBAPI is the part of the DynamoDB client of the AWS SDK that a Table uses. *dynamodb.Client
// has it.
type DynamoDBAPI interface {
	lease.DynamoDBAPI
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (
		*dynamodb.QueryOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput,
		...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config configures a Table. The zero value of an optional field means its default.
type Config struct {
	// DynamoDB is the client; required. Its retries may be on or off: in both cases the Table
	// recognises its own writes after a lost answer.
	DynamoDB DynamoDBAPI
	// Table is the name of the DynamoDB table; required. Open creates it if it is missing.
	Table string
	// Space is the space of the keys; default all 2^128 hash keys. An existing table must have
	// the same one, else Open returns ErrUnusableTable.
	Space allocate.Space
	// Interval is the time between two renewals of a Session, which also read the changes of other
	// processes, and between two looks of a Move; default 1 s, from 1 ms to a tenth of Expiry.
	Interval time.Duration
	// Expiry is the time without a renewal after which a Move declares a Session dead; default
	// 30 s, at least 10 ms. The session itself returns no keys after half of that.
	Expiry time.Duration
	// CallTimeout limits the time of one call; default 5 s.
	CallTimeout time.Duration

	logRows int64 // number of changes in the log; default logRows
}

// logRows is the number of changes in the log. A process that is further behind reads the whole
// table.
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
			faults = append(faults, fmt.Errorf("keytable: "+format, args...))
		}
	}
	fault(c.DynamoDB == nil, "DynamoDB is missing: want a *dynamodb.Client")
	fault(c.Table == "", "Table is missing: want the name of the table of names and keys")
	fault(c.Expiry < 10*time.Millisecond, "Expiry is %s: want 10ms or more", c.Expiry)
	fault(c.Interval < time.Millisecond || c.Interval > c.Expiry/10,
		"Interval is %s: want 1ms to a tenth of Expiry, %s", c.Interval, c.Expiry/10)
	fault(c.CallTimeout < 0, "CallTimeout is %s: want more than 0", c.CallTimeout)
	return errors.Join(faults...)
}
