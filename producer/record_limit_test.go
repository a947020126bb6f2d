package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
)

// limited is a Reader of a stream with a record limit.
type limited struct {
	Reader
	kib   int32
	err   error
	until time.Time // err counts before it; zero: always
	calls int
}

func (l *limited) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
	...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	l.calls++
	if !l.until.IsZero() && !time.Now().Before(l.until) {
		l.err = nil
	}
	return &kinesis.DescribeStreamSummaryOutput{
		StreamDescriptionSummary: &types.StreamDescriptionSummary{MaxRecordSizeInKiB: aws.Int32(l.kib)},
	}, l.err
}

// ListShards answers the question for the stream's time, and has none.
func (l *limited) ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
	*kinesis.ListShardsOutput, error,
) {
	return &kinesis.ListShardsOutput{}, nil
}

func sized(bytes int) runnel.Record {
	return runnel.Record{PartitionKey: "a", Data: make([]byte, bytes-1)}
}

// The stream's own limit counts. It is read when a record needs more than is known, and again when
// one is too large for that: it may have been raised meanwhile.
func TestRecordLimitOfTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reader := &stream{}, &limited{kib: 2048}
		p, ctx := s.openUnits(t, func(c *Config) { c.Reader = reader })
		take := func(bytes int, calls int, fits bool) {
			t.Helper()
			before := reader.calls
			err := p.PutFunc(ctx, sized(bytes), nil)
			if errors.Is(err, ErrTooLarge) == fits || fits && err != nil {
				t.Errorf("%d bytes: %v", bytes, err)
			}
			if !fits && !strings.Contains(fmt.Sprint(err), fmt.Sprint(reader.kib<<10)) {
				t.Errorf("the error does not name the limit: %v", err)
			}
			if asked := reader.calls - before; asked != calls {
				t.Errorf("%d bytes: the limit was read %d times, want %d", bytes, asked, calls)
			}
			time.Sleep(time.Second)
		}
		take(1000, 0, true)
		take(1<<20, 1, true) // with its identity it has more
		take(2<<20-200, 0, true)
		take(2<<20, 1, true) // as it is
		take(2<<20+1, 1, false)
		reader.kib = 10 << 10
		take(10<<20, 1, true)
		take(10<<20+1, 0, false) // no stream takes more
		closeNow(t, p, ctx)
		largest := 0
		for i, data := range s.data {
			largest = max(largest, len(data)+len(s.keys[i]))
		}
		if largest != 10<<20 {
			t.Errorf("the largest record has %d bytes", largest)
		}
	})
}

// The limit is read through an outage, until the Put's context ends; a caller that may not read it
// goes by the least limit of all streams.
func TestRecordLimitThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reader := &stream{}, &limited{kib: 2048, err: errRefusedConnection}
		p, ctx := s.openUnits(t, func(c *Config) { c.Reader = reader })
		brief, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := p.PutFunc(brief, sized(2<<20), nil); !errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("in an outage: %v", err)
		}
		reader.until = time.Now().Add(time.Minute)
		if err := p.PutFunc(ctx, sized(2<<20), nil); err != nil {
			t.Errorf("after it: %v", err)
		}
		closeNow(t, p, ctx)

		reader = &limited{err: apiError("AccessDeniedException", "no")}
		p, ctx = s.openUnits(t, func(c *Config) { c.Reader = reader })
		if err := p.PutFunc(ctx, sized(1<<20+1), nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a caller that may not: %v", err)
		}
		if err := p.PutFunc(ctx, sized(1<<20), nil); err != nil {
			t.Errorf("a caller that may not, within the limit of all streams: %v", err)
		}
		closeNow(t, p, ctx)
	})
}

// With a journal a caller that may not read the limit halts the producer. Otherwise the record
// would be among the refused ones, and no later run would put it.
func TestRecordLimitThatIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := &stream{}, &notes{}
		p, ctx := s.openUnits(t, func(c *Config) {
			c.Reader, c.Journal = &limited{kib: 2048, err: apiError("AccessDeniedException", "no")}, n
		})
		put(t, p, ctx, sized(1000), nil)
		err := p.PutFunc(ctx, sized(1<<20+1), nil)
		if !errors.Is(err, ErrHalted) || errors.Is(err, ErrTooLarge) {
			t.Errorf("Put: %v", err)
		}
		if err := p.Close(ctx); !errors.Is(err, ErrHalted) {
			t.Errorf("Close: %v", err)
		}
	})
}

// Close wakes a Put that reads the limit.
func TestCloseWhileTheLimitIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reader := &stream{}, &limited{err: errRefusedConnection}
		p, ctx := s.openUnits(t, func(c *Config) { c.Reader = reader })
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- p.PutFunc(ctx, sized(2<<20), nil) }()
		}
		synctest.Wait()
		closeNow(t, p, ctx)
		for range 2 {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// A record that the whole buffer has no room for would wait for ever.
func TestRecordLargerThanTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ctx := (&stream{}).openUnits(t, func(c *Config) {
			c.Reader, c.MaxBufferedBytes = &limited{kib: 10 << 10}, 2<<20
		})
		err := p.PutFunc(ctx, sized(3<<20), nil)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "MaxBufferedBytes") {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
}
