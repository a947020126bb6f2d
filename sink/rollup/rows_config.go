package rollup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/lease"
)

// BadPolicy is the policy for records that cannot be folded.
type BadPolicy int

const (
	// SkipBad counts a bad record, keeps it in the table of bad records and goes on.
	SkipBad BadPolicy = iota
	// StopAtBad stops the shard with an error.
	StopAtBad
)

// KinesisAPI is the part of the AWS SDK's Kinesis client that Rows uses.
type KinesisAPI interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
}

// RowsConfig configures Rows. The zero value of an optional field means its default.
type RowsConfig struct {
	// Definition says how records become rows. Required.
	Definition Definition
	// Store is the database. Required.
	Store RowStore
	// Kinesis is the client, for the list of shards. Required.
	Kinesis KinesisAPI
	// Leases is the client of the lease table. With it, a new table is refused if the application
	// has processed records already: it would begin in the middle. Default: it is not checked.
	Leases lease.DynamoDBAPI
	// App and Stream are those of the consumer.Config. Required.
	App, Stream string
	// TTL sets the attribute "expires" of each row: this long after its last write or after the
	// end of its bucket, whichever is later. A record for a deleted row begins the row again with
	// itself alone, so take a TTL beyond the stream's retention period if records may come that
	// late. Default 0: no row expires.
	TTL time.Duration
	// Bad is the policy for records that cannot be folded; default SkipBad.
	Bad BadPolicy
	// OnBad is called for each record that is skipped. A record that is read again is reported
	// again. It must not block. Calls come from several goroutines.
	OnBad func(BadRecord)
	// OnCommit is called when all rows of a batch are written. It must not block. Calls come from
	// several goroutines.
	OnCommit func(Commit)
	// Parallel is the number of writes under way, of all shards together; default 16.
	Parallel int
	// CacheBytes bounds the memory for rows that were written last; default 64 MiB.
	CacheBytes int
}

const (
	defaultParallel = 16
	defaultCache    = 64 << 20
)

// reserved are the names of attributes that each row has for itself.
var reserved = []string{"_id", "pk", "version", "entries", "expires"}

func (c RowsConfig) withDefaults() RowsConfig {
	c.Definition = c.Definition.WithDefaults()
	if c.OnBad == nil {
		c.OnBad = func(BadRecord) {}
	}
	if c.OnCommit == nil {
		c.OnCommit = func(Commit) {}
	}
	if c.Parallel == 0 {
		c.Parallel = defaultParallel
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCache
	}
	return c
}

// Validate reports every fault of the configuration.
func (c RowsConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("rollup: "+format, args...))
		}
	}
	if err := c.Definition.Validate(); err != nil {
		faults = append(faults, err)
	}
	for _, f := range c.Definition.fields() {
		fault(slices.Contains(reserved, f.Name), "the name %q is that of an attribute which each "+
			"row has: NAME=/pointer gives it another", f.Name)
	}
	fault(c.Store == nil, "Store is missing: want a *dynamostore.Store or a *mongostore.Store")
	fault(c.Kinesis == nil, "Kinesis is missing: want a *kinesis.Client")
	fault(c.App == "", "App is missing: want the application's name")
	fault(c.Stream == "", "Stream is missing: want the stream's name or ARN")
	if err := streamref.Check(c.Stream); err != nil {
		fault(true, "Stream is %q, %v", c.Stream, err)
	}
	fault(c.TTL < 0, "TTL is %s: want 0 (for none) or more", c.TTL)
	fault(c.Bad != SkipBad && c.Bad != StopAtBad, "Bad is %d: want SkipBad or StopAtBad", c.Bad)
	fault(c.Parallel < 0, "Parallel is %d: want 0 (for %d) or more", c.Parallel, defaultParallel)
	fault(c.CacheBytes < 0, "CacheBytes is %d: want 0 (for 64 MiB) or more", c.CacheBytes)
	return errors.Join(faults...)
}
