package producer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// recordLimit is the stream's limit for a record: data and partition key, in bytes. It begins with
// Config.MaxRecordBytes, by default the lowest limit of any stream, and is read from the stream
// when a record needs more.
type recordLimit struct {
	asking chan struct{} // holds a value while the limit is read; capacity 1

	mu    sync.Mutex
	bytes int
	asked time.Time // when the limit was last read
}

// askEvery is the least time between two reads of the limit for records that exceed it. AWS allows
// 20 of these calls a second for an account ("DescribeStreamSummary").
const askEvery = 200 * time.Millisecond

// now returns the limit as far as it is known.
func (l *recordLimit) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// fit returns nil if the examined record fits into the stream's limit and into the buffer. If it
// fits without an identity only, it goes as it is.
func (p *Producer) fit(ctx context.Context, e *entry) error {
	c, r := &p.cfg, &e.record
	size, wrapped := e.size(), e.wireSize
	limit := p.limit.now()
	if wrapped > limit && c.learns && limit < apiMaxRecordBytes {
		var err error
		if limit, err = p.readLimit(ctx, wrapped); err != nil {
			return err
		}
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("put to stream %s, key %q: %w: "+format,
			append([]any{c.Stream, r.PartitionKey, ErrTooLarge}, args...)...)
	}
	switch {
	case size > limit && c.learns:
		return fault("data and key have %d bytes, the stream's limit is %d; split the record, or "+
			"raise the limit with UpdateMaxRecordSize (up to 10 MiB)", size, limit)
	case size > limit:
		return fault("data and key have %d bytes, the limit is %d; split the record, or raise the "+
			"stream's limit with UpdateMaxRecordSize (up to 10 MiB) and MaxRecordBytes with it",
			size, limit)
	case size > c.MaxBufferedBytes:
		return fault("data and key have %d bytes, and the buffer holds %d; raise MaxBufferedBytes",
			size, c.MaxBufferedBytes)
	case wrapped > limit && c.Journal != nil:
		return fault("with its identity, without which a journal cannot keep it, it has %d bytes, "+
			"the limit is %d; raise the stream's limit with UpdateMaxRecordSize (up to 10 MiB), "+
			"or use no journal", wrapped, limit)
	}
	if wrapped > limit {
		e.asIs, e.wireSize = true, size
	}
	return nil
}

// readLimit reads the stream's limit for a record of so many bytes, and returns it. It retries
// through outages until ctx ends, so no record is refused because the stream does not answer.
//
// If the caller lacks the right to read the limit, the known limit applies. But with a Journal the
// producer then halts: every later run would also take the record for too large, although the real
// limit may have room for it.
func (p *Producer) readLimit(ctx context.Context, need int) (int, error) {
	stopped := func(cause error) error {
		if p.open.Err() != nil {
			return p.closedError()
		}
		return fmt.Errorf("put to stream %s: reading the stream's record limit for a record of %d "+
			"bytes: %w", p.cfg.Stream, need, cause)
	}
	l := &p.limit
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return 0, stopped(context.Cause(ctx))
	case <-p.open.Done():
		return 0, stopped(nil)
	}
	defer func() { <-l.asking }()
	open, end := p.untilClosed(ctx)
	defer end()
	for attempt := 1; ; attempt++ {
		l.mu.Lock()
		limit, asked := l.bytes, l.asked
		l.mu.Unlock()
		if limit >= need || !asked.IsZero() && time.Since(asked) < askEvery {
			return limit, nil
		}
		err := p.askLimit(ctx)
		if isFinal(err) && p.cfg.Journal != nil {
			p.mu.Lock()
			p.mu.core.halt(fmt.Errorf("read the record limit of stream %s: %w", p.cfg.Stream, err))
			p.mu.Unlock()
			p.halt()
			return 0, p.closedError()
		}
		if err == nil || isFinal(err) || isInvalid(err) {
			continue // with the limit known now
		}
		if cause := p.cfg.backoff().Wait(open, attempt); cause != nil {
			return 0, stopped(fmt.Errorf("%w; the last answer: %w", cause, err))
		}
	}
}

// untilClosed returns a context that ends with ctx, when Close begins, or when end is called.
func (p *Producer) untilClosed(ctx context.Context) (open context.Context, end func()) {
	open, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.open, func() { cancel(ErrClosed) })
	return open, func() { stop(); cancel(nil) }
}

// askLimit reads the limit once. A refusal counts as a read, with the limit unchanged.
func (p *Producer) askLimit(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	input := &kinesis.DescribeStreamSummaryInput{}
	input.StreamName, input.StreamARN = p.target()
	output, err := p.cfg.Reader.DescribeStreamSummary(ctx, input)
	err = p.lasting(ctx, p.cfg.Reader, err)
	if err != nil && !isFinal(err) && !isInvalid(err) {
		return err
	}
	l := &p.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = time.Now()
	if err == nil && output.StreamDescriptionSummary != nil {
		kib := int(aws.ToInt32(output.StreamDescriptionSummary.MaxRecordSizeInKiB))
		l.bytes = min(max(kib<<10, apiMinRecordBytes), apiMaxRecordBytes)
	}
	return err
}
