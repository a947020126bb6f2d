package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// KinesisAPI is the part of the Kinesis client that this package uses; *kinesis.Client has it.
type KinesisAPI interface {
	shardmap.KinesisAPI
	pages.KinesisAPI
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// Beginning is the place at which the reading of a shard begins.
type Beginning struct {
	// From is the place, and After the last record before it, in a part of an aggregate too. At
	// runnel.End the shard is not read. Default: From.
	From  runnel.From
	After runnel.Position
	// Filter knows the units before the place. Default: the parents'.
	Filter *aggregate.Filter
	// Complete is a time by the stream's clock: records that arrived before are not in demand, and
	// are no gap. Default: not known.
	Complete time.Time
}

// Config is the configuration of Run. Stream, Kinesis and Handle are needed; every other field's
// zero value is its default.
type Config struct {
	// Stream is the stream's name or ARN. Needed.
	Stream string
	// Kinesis makes the calls. Needed.
	Kinesis KinesisAPI
	// From is where the reading begins. A sequence number is one of Shard's. Default
	// runnel.FromOldest.
	From runnel.From
	// Shard is the only shard to read, to its end. Default: all shards, including later ones.
	Shard runnel.ShardID
	// Once ends Run when every record that was there at its start has been handled.
	Once bool
	// Doubles delivers the doubles of units too.
	Doubles bool
	// Void is the policy for void aggregates. With opener.VoidStop Run ends at the first one, with
	// ErrVoid. Default opener.VoidAuto.
	Void opener.Void

	// Handle gets the records of one read of a shard, in order. It is called once at a time, over
	// all shards. The records are valid during the call; their Data is valid for as long as it is
	// kept. Handle ranges to the end or returns an error, with which Run ends. Needed.
	Handle func(ctx context.Context, records iter.Seq[*runnel.Record]) error
	// Begin returns where the reading of a shard begins, when its parents are done. inherited knows
	// their units. It is called from several goroutines at a time; with an error Run ends. Default:
	// at From.
	Begin func(
		ctx context.Context, shard runnel.Shard, inherited *aggregate.Filter,
	) (Beginning, error)
	// Created is the creation time of the stream to read; another stream of the name is
	// ErrRecreated. Default: any.
	Created time.Time
	// GiveUp is the time for which the reads of a shard may fail, throttling left out, before Run
	// ends with their error. Default: no limit.
	GiveUp time.Duration
	// OnNotice gets the events that the records do not show. It must not block, and is called from
	// several goroutines at a time. Default none.
	OnNotice func(Notice)

	// ReadRate is the highest number of reads a second and shard, also at a server without limits.
	// Default: the limits of pages.LimitsOf.
	ReadRate float64
	// Interval is the least time between two reads of one shard. Default 200 ms: AWS allows five a
	// second for all readers together. With ReadRate it is that rate's distance.
	Interval time.Duration
	// IdleInterval is the longest time between two reads of a shard that has no new record. Default
	// 1 s.
	IdleInterval time.Duration
	// Parallel is the number of shards that are read at the same time, each with up to 10 MiB in
	// memory. Default 8.
	Parallel int
}

// validate reports every fault of the configuration.
func (c *Config) validate() error {
	var errs []error
	wrong := func(is bool, text string) {
		if is {
			errs = append(errs, errors.New(text))
		}
	}
	wrong(c.Stream == "", "follow: Stream is missing: want the stream's name")
	if err := streamref.Check(c.Stream); err != nil {
		wrong(true, fmt.Sprintf("follow: Stream is %q, %v", c.Stream, err))
	}
	wrong(c.Kinesis == nil, "follow: Kinesis is missing: want a *kinesis.Client")
	wrong(c.Handle == nil, "follow: Handle is missing: want a function that takes the records")
	wrong(c.Interval < 0 || c.IdleInterval < 0 || c.Parallel < 0,
		"follow: Interval, IdleInterval and Parallel cannot be below 0")
	wrong(!(c.ReadRate >= 0) || math.IsInf(c.ReadRate, 1),
		"follow: ReadRate cannot be below 0 or infinite")
	wrong(c.From.Sequence() != "" && c.Shard == "",
		"follow: a sequence number is of one shard: name the shard")
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = 200 * time.Millisecond
		if c.ReadRate > 0 {
			c.Interval = time.Duration(float64(time.Second) / c.ReadRate)
		}
	}
	if c.IdleInterval == 0 {
		c.IdleInterval = time.Second
	}
	c.IdleInterval = max(c.Interval, c.IdleInterval)
	if c.Parallel == 0 {
		c.Parallel = 8
	}
	if c.OnNotice == nil {
		c.OnNotice = func(Notice) {}
	}
	return c
}
