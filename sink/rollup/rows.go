package rollup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// Rows folds the batches of a consumer into the rows of a RowStore. It is safe for concurrent use.
//
// Each record counts once, however often it is read and however batches are cut. A row has an entry
// for each shard with records in it: the position up to which the row has them. An update folds
// only the records behind the shard's own entry. It sets the entry in the same write, and its
// condition is the row's version. If the condition fails, the row is read and folded again.
//
// The condition must be the version, and not the shard's own entry: two shards that read a maximum
// of 5, and write 7 and 6 on the condition of their own entries, leave 6. The entry must be the
// row's, and not the batch's: after a crash between two rows, a batch that is cut elsewhere has
// records that the one row has, and the other has not.
//
// The first write of a shard sets the entries of its ancestors to the shard's end. They are never
// removed. Otherwise a paused worker of a parent would find no entry after its pause, and count its
// batch again.
//
// An answer that is lost needs no care: the row is read again, and its entries say whether the
// write took effect. A write that arrives late fails its condition.
type Rows struct {
	cfg     RowsConfig
	lineage *lineage
	cache   *rowCache
	slots   chan struct{} // one token for each write under way
	locks   rowLocks
	backoff retry.Backoff
}

// attempts is the largest number of attempts of one call or update, and patience the time after
// which no further one begins. Then the consumer reports the error, and repeats the batch as long
// as it may.
const (
	attempts = 12
	patience = 5 * time.Second // a call that hangs takes longer than the pauses
)

// chunk is the number of rows that are read at once, which bounds the memory.
const chunk = 100

// OpenRows returns Rows, and prepares the table. A table of another application, stream or
// definition is an error.
func OpenRows(ctx context.Context, cfg RowsConfig) (*Rows, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	out, err := cfg.Kinesis.DescribeStreamSummary(ctx, streamref.Describe(cfg.Stream))
	if err != nil {
		return nil, fmt.Errorf("describe the stream %s: %w", cfg.Stream, err)
	}
	stream := lease.Stream{
		Name:    streamref.Name(cfg.Stream),
		Created: aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp),
	}
	setup := Setup{
		App: cfg.App, Stream: stream.String(), Definition: cfg.Definition, Expires: cfg.TTL > 0,
	}
	if cfg.Leases != nil {
		setup.New = func(ctx context.Context) error { return cfg.isNew(ctx, stream) }
	}
	r := newRows(cfg)
	if err := r.insist(ctx, func() error { return cfg.Store.Prepare(ctx, setup) }); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", cfg.Store, err)
	}
	return r, nil
}

// isNew returns an error if the application fills another table, or has processed records of the
// stream. Workers that start at the same moment find neither: see Output.
func (c RowsConfig) isNew(ctx context.Context, stream lease.Stream) error {
	table, err := lease.New(lease.Config{DynamoDB: c.Leases, Table: c.App, Stream: stream})
	if err != nil {
		return Lasting(err)
	}
	there, err := table.Exists(ctx)
	if err != nil || !there {
		return err
	}
	leases, _, err := table.List(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.Output != "" && l.Output != c.Store.String() {
			return Lasting(fmt.Errorf("%w: %w", ErrOtherSetup, &lease.OutputError{
				Table: c.App, Want: c.Store.String(), Have: l.Output,
			}))
		}
		if l.Processed() != runnel.Start() && l.Output != "" {
			return Lasting(&goneError{app: c.App})
		}
		if l.Processed() != runnel.Start() {
			return Lasting(fmt.Errorf("%w: application %s has processed records into another "+
				"table, so %s would begin in the middle: name another application, which begins "+
				"with the oldest record", ErrOtherSetup, c.App, c.Store))
		}
	}
	return nil
}

// goneError is returned if an application has filled a table that does not know it any more.
type goneError struct{ app string }

func (e *goneError) Error() string {
	return fmt.Sprintf("application %s has filled it, and its setup is gone, as after a deletion: "+
		"it would begin in the middle; restore it, or name another application, which begins with "+
		"the oldest record", e.app)
}

// Is reports whether target is ErrOtherSetup.
func (e *goneError) Is(target error) bool { return target == ErrOtherSetup }

// newRows wants a valid configuration with its defaults.
func newRows(cfg RowsConfig) *Rows {
	return &Rows{
		cfg: cfg, lineage: newLineage(cfg.Kinesis, cfg.Stream), cache: newRowCache(cfg.CacheBytes),
		slots: make(chan struct{}, cfg.Parallel), locks: newRowLocks(),
		backoff: retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second},
	}
}

// Output is the consumer.Config.Output of the workers that call Handle. Without it, two workers
// that begin an application with two tables at the same moment share the records between them.
func (r *Rows) Output() string { return r.cfg.Store.String() }

// Handle is a consumer.Handler. When it returns nil, every row of the batch is written. After an
// error some of them may be; the batch, or another one with its records, may be handled again.
func (r *Rows) Handle(ctx context.Context, batch *consumer.Batch) error {
	parts, bad, err := r.split(batch)
	if err != nil {
		return err
	}
	ancestors, err := r.lineage.ancestors(ctx, batch.ShardID)
	if err != nil {
		return fmt.Errorf("find the ancestors of shard %s: %w", batch.ShardID, err)
	}
	if err := r.refuse(ctx, bad); err != nil {
		return err
	}
	u := &update{rows: r, entry: entryName(batch.ShardID), ancestors: ancestors}
	for some := range slices.Chunk(parts, chunk) {
		if err := r.look(ctx, some); err != nil {
			return err
		}
		err := r.parallel(ctx, len(some), func(i int) error {
			if err := u.row(ctx, some[i]); err != nil {
				return fmt.Errorf("row %q of %s: %w", some[i].key, r.cfg.Store, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		clear(some) // the rows that were read are not needed any more
	}
	r.cfg.OnCommit(Commit{
		ShardID: batch.ShardID, Records: len(batch.Records), Rows: len(parts),
		Bad: len(bad) + int(u.bad.Load()),
	})
	return nil
}

// refuse keeps the bad records of a batch and reports them, or stops at the first one.
func (r *Rows) refuse(ctx context.Context, bad []BadRecord) error {
	if r.cfg.Bad == StopAtBad && len(bad) > 0 {
		return r.keep(ctx, bad[0])
	}
	return r.parallel(ctx, len(bad), func(i int) error {
		err := r.keep(ctx, bad[i])
		if err == nil {
			r.cfg.OnBad(bad[i])
		}
		return err
	})
}

// keep keeps a bad record, or returns the error that stops its shard.
func (r *Rows) keep(ctx context.Context, bad BadRecord) error {
	at := bad.Record
	if r.cfg.Bad == StopAtBad {
		return Lasting(&BadRecordError{
			ShardID: at.ShardID, Position: at.Position, Err: &BadError{Reason: bad.Reason},
		})
	}
	err := r.insist(ctx, func() error { return r.cfg.Store.KeepBad(ctx, bad) })
	if err != nil {
		return fmt.Errorf("keep the bad record %s of shard %s beside %s: %w", at.Position,
			at.ShardID, r.cfg.Store, err)
	}
	return nil
}

// look reads the rows of parts that are not in the cache.
func (r *Rows) look(ctx context.Context, parts []*part) error {
	var keys []string
	var missing []*part
	for _, p := range parts {
		if _, found := r.cache.get(p.key); !found {
			keys, missing = append(keys, p.key), append(missing, p)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := r.read(ctx, keys)
	if err != nil {
		return err
	}
	for i, p := range missing {
		p.seen = &rows[i]
	}
	return nil
}

func (r *Rows) read(ctx context.Context, keys []string) (rows []StoredRow, err error) {
	err = r.insist(ctx, func() (err error) {
		rows, err = r.cfg.Store.Read(ctx, keys)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %d rows of %s: %w", len(keys), r.cfg.Store, err)
	}
	return rows, nil
}

// insist repeats a call that may be made twice, if its error may pass.
func (r *Rows) insist(ctx context.Context, call func() error) error {
	for attempt, start := 1, time.Now(); ; attempt++ {
		err := call()
		if err == nil || !r.again(ctx, err, attempt, start) {
			return err
		}
	}
}

// again waits for the next attempt after an error; false: there is none.
func (r *Rows) again(ctx context.Context, err error, attempt int, start time.Time) bool {
	return !errors.Is(err, ErrLasting) && attempt < attempts && time.Since(start) < patience &&
		retry.WaitOr(ctx, r.backoff.After(attempt), sink.Stopping(ctx))
}

// parallel calls do for 0 to n-1, at most Parallel calls at once, and returns the first error. It
// begins no further call after an error.
func (r *Rows) parallel(ctx context.Context, n int, do func(i int) error) error {
	var group errgroup.Group
	var failed atomic.Bool
	for i := 0; i < n && !failed.Load(); i++ {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			group.Go(func() error { return context.Cause(ctx) })
			return group.Wait()
		}
		group.Go(func() error {
			defer func() { <-r.slots }()
			err := do(i)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}

// part is the records of a batch that go into one row.
type part struct {
	key     string
	records []*runnel.Record
	row     Row        // of all records
	apart   bool       // the records could not be folded together; row lacks some
	seen    *StoredRow // as it was read; nil: not read
}

// split folds a batch, and returns its rows in the order of their first records.
func (r *Rows) split(batch *consumer.Batch) (parts []*part, bad []BadRecord, err error) {
	folder, err := NewFolder(r.cfg.Definition)
	if err != nil {
		return nil, nil, err
	}
	for i := range batch.Records {
		record := &batch.Records[i]
		group, err := folder.add(record)
		if group < 0 {
			bad = append(bad, BadRecord{record, reason(err)})
			continue
		}
		if group == len(parts) {
			parts = append(parts, &part{})
		}
		p := parts[group]
		p.records, p.apart = append(p.records, record), p.apart || err != nil
	}
	fit := parts[:0]
	for group, p := range parts {
		p.row = folder.rowOf(&folder.groups[group])
		if p.key = r.cfg.Definition.RowKey(&p.row); len(p.key) <= maxRowKey {
			fit = append(fit, p)
			continue
		}
		for _, record := range p.records {
			bad = append(bad, BadRecord{record, fmt.Sprintf("the key of its row has %d bytes, and "+
				"a table takes %d", len(p.key), maxRowKey)})
		}
	}
	slices.SortFunc(bad, func(a, b BadRecord) int {
		return a.Record.Position.Compare(b.Record.Position)
	})
	return fit, bad, nil
}

// mostReason is the size of a reason, in bytes: an Own column may return any error.
const mostReason = 4 << 10

func reason(err error) string {
	reason := err.Error()
	if bad, ok := errors.AsType[*BadError](err); ok {
		reason = bad.Reason
	}
	return strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "\ufffd")
}
