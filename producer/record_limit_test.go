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

// limitedReader is a Reader of a stream with a record limit.
type limitedReader struct {
	Reader
	kib   int32
	err   error
	until time.Time // err is returned before it; zero: always
	calls int
}

func (l *limitedReader) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
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

// ListShards answers the request for the stream's time, without a Date.
func (l *limitedReader) ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
	*kinesis.ListShardsOutput, error,
) {
	return &kinesis.ListShardsOutput{}, nil
}

func sized(bytes int) runnel.Record {
	return runnel.Record{PartitionKey: "a", Data: make([]byte, bytes-1)}
}

// The stream's own limit applies. It is read when a record needs more than is known, and again when
// a record exceeds that, because it may have been raised.
func TestRecordLimitOfTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reader := &stream{}, &limitedReader{kib: 2048}
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
		take(1<<20, 1, true) // with its identity it is larger
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

// The limit is read through an outage, until the Put's context ends. For a caller without the right
// to read it, the lowest limit of all streams applies.
func TestRecordLimitThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, reader := &stream{}, &limitedReader{kib: 2048, err: errRefusedConnection}
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

		reader = &limitedReader{err: apiError("AccessDeniedException", "no")}
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

// With a journal, the producer halts if the caller lacks the right to read the limit. Otherwise the
// record would count as refused, and no later run would put it.
func TestRecordLimitThatIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := &stream{}, &memoryJournal{}
		p, ctx := s.openUnits(t, func(c *Config) {
			c.Reader, c.Journal = &limitedReader{kib: 2048, err: apiError("AccessDeniedException", "no")}, n
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
		s, reader := &stream{}, &limitedReader{err: errRefusedConnection}
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

// A record larger than the whole buffer is refused. Otherwise it would wait for ever.
func TestRecordLargerThanTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ctx := (&stream{}).openUnits(t, func(c *Config) {
			c.Reader, c.MaxBufferedBytes = &limitedReader{kib: 10 << 10}, 2<<20
		})
		err := p.PutFunc(ctx, sized(3<<20), nil)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "MaxBufferedBytes") {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
}
