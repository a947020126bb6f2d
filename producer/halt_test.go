package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
)

// denied returns a fault that refuses the caller in some calls, given by their numbers from 1.
func denied(code string, calls ...int) func(
	context.Context, int, *kinesis.PutRecordsInput) (bool, error) {
	return func(_ context.Context, n int, _ *kinesis.PutRecordsInput) (bool, error) {
		if slices.Contains(calls, n) {
			return false, apiError(code, "not now")
		}
		return false, nil
	}
}

// A refusal of the caller halts a producer with a journal: Put, Flush and Close return it, every
// record gets a result, the journal gets no end, and the next run puts the rest.
func TestCallerRefusalHalts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{latency: 10 * time.Millisecond, fault: denied("AccessDeniedException", 2)}
		var delivered, halted int
		each := func(r Result) {
			switch {
			case r.Err == nil:
				delivered++
			case errors.Is(r.Err, ErrHalted) && errors.Is(r.Err, ErrRefusedCaller):
				halted++
			default:
				t.Errorf("%v", r.Err)
			}
		}
		p, ctx := s.openUnits(t, func(c *Config) {
			c.Journal, c.MaxInFlight, c.MaxUnitBytes = n, 1, 150
		})
		for i := range 30 {
			for _, key := range []string{"a", "b", "c"} {
				err := p.PutFunc(ctx, runnel.Record{PartitionKey: key, Data: fmt.Append(nil, i+1)}, each)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		err := p.Flush(ctx)
		var why *HaltedError
		if !errors.As(err, &why) || !errors.Is(err, ErrRefusedCaller) ||
			why.Open != 90-delivered || halted != why.Open || delivered == 0 {
			t.Fatalf("Flush: %v; %d delivered, %d halted", err, delivered, halted)
		}
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a"}, nil); !errors.As(err, &why) {
			t.Errorf("Put: %v", err)
		}
		if err := p.Close(ctx); !errors.As(err, &why) || why.Open != halted {
			t.Errorf("Close: %v", err)
		}
		for _, end := range n.settled {
			if end.Outcome != OutcomeStored {
				t.Errorf("the journal was told of %+v", end)
			}
		}
		if s.calls != 2 || len(n.open) == 0 {
			t.Errorf("%d calls, %d units open", s.calls, len(n.open))
		}
		p, ctx = s.openUnits(t, func(c *Config) { c.Journal, c.Resume = n, slices.Clone(n.open) })
		closeNow(t, p, ctx)
		if len(n.open) > 0 || inOrder(t, s.read(t, true)) > 0 {
			t.Errorf("%d units are open after the next run", len(n.open))
		}
	})
}

// When the producer halts, a blocked Put returns. Calls in flight land first, and the records that
// they store are acknowledged.
func TestHaltWakesPuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{}
		s.fault = func(_ context.Context, n int, _ *kinesis.PutRecordsInput) (bool, error) {
			if n == 2 {
				return false, apiError("UnrecognizedClientException", "no such key")
			}
			time.Sleep(time.Second)
			return false, nil
		}
		p, ctx := s.openUnits(t, func(c *Config) {
			c.Journal, c.MaxBufferedRecords, c.MaxBatchRecords = n, 2, 1
		})
		var first error
		for i, key := range []string{"a", "b"} {
			err := p.PutFunc(ctx, runnel.Record{PartitionKey: key, Data: []byte("1")}, func(r Result) {
				if i == 0 {
					first = r.Err
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				synctest.Wait() // its call has begun
			}
		}
		err := p.PutFunc(ctx, runnel.Record{PartitionKey: "c", Data: []byte("1")}, nil)
		var why *HaltedError
		if !errors.As(err, &why) || why.Open != 0 {
			t.Errorf("Put: %v", err)
		}
		if err := p.Close(ctx); !errors.As(err, &why) || why.Open != 1 || why.Unknown != 0 {
			t.Errorf("Close: %v", err)
		}
		if first != nil || len(s.data) != 1 || len(n.open) != 1 {
			t.Errorf("the call in flight: %v; %d stored, %d open", first, len(s.data), len(n.open))
		}
	})
}

// Without a journal a later run could not send a record again. So each record gets the stream's
// refusal as its result, and the producer goes on.
func TestCallerRefusalWithoutJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{fault: denied("ResourceNotFoundException", 1)}
		p, ctx := s.openUnits(t, nil)
		for i, refused := range []bool{true, false} {
			future, err := p.Put(ctx, runnel.Record{PartitionKey: "a", Data: fmt.Append(nil, i)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = future.Wait(ctx)
			if errors.Is(err, ErrRefused) != refused || errors.Is(err, ErrRefusedCaller) != refused ||
				errors.Is(err, ErrHalted) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		closeNow(t, p, ctx)
	})
}

// A refusal of one record does not halt the producer. The journal gets the record's end, with the
// cause.
func TestRecordRefusalDoesNotHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{}
		s.fault = func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
			for _, r := range in.Records {
				if *r.PartitionKey == "bad" {
					return false, apiError("ValidationException", "no")
				}
			}
			return false, nil
		}
		p, ctx := s.openUnits(t, func(c *Config) { c.Journal = n })
		refused := 0
		for _, key := range []string{"a", "bad", "b"} {
			put(t, p, ctx, runnel.Record{PartitionKey: key, Data: []byte("1")}, func(r Result) {
				if r.Err != nil {
					refused++
				}
				if errors.Is(r.Err, ErrRefused) != (key == "bad") || errors.Is(r.Err, ErrRefusedCaller) {
					t.Errorf("key %s: %v", key, r.Err)
				}
			})
		}
		closeNow(t, p, ctx)
		ends := map[UnitOutcome]int{}
		for _, end := range n.settled {
			ends[end.Outcome]++
			if errors.Is(end.Err, ErrRefused) != (end.Outcome == OutcomeUndelivered) {
				t.Errorf("%+v", end)
			}
		}
		if refused != 1 || ends[OutcomeUndelivered] != 1 || len(n.open) != 0 {
			t.Errorf("%d refused, %v", refused, ends)
		}
	})
}

// A caller without the right to look units up or to list the shards also halts a producer with a
// journal.
func TestRefusedReaderHalts(t *testing.T) {
	t.Run("look-up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := &memoryJournal{}
			s := &stream{}
			s.fault = func(ctx context.Context, _ int, _ *kinesis.PutRecordsInput) (bool, error) {
				<-ctx.Done()
				return true, ctx.Err()
			}
			p, ctx := s.openUnits(t, func(c *Config) { c.Journal, c.Reader = n, refusingReader{} })
			put(t, p, ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")}, nil)
			var why *HaltedError
			if err := p.Close(ctx); !errors.As(err, &why) || why.Open != 1 || why.Unknown != 1 {
				t.Errorf("Close: %v", err)
			}
			if len(n.open) != 1 || len(n.settled) > 0 {
				t.Errorf("%d open, %v", len(n.open), n.settled)
			}
		})
	})
	for _, order := range []Order{OrderShard, OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &memoryJournal{}
				s := &stream{}
				p, ctx := s.openUnits(t, func(c *Config) {
					c.Journal, c.Reader, c.Order = n, refusingReader{}, order
				})
				err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")}, nil)
				var why *HaltedError
				if end := p.Close(ctx); !errors.As(end, &why) || err == nil && why.Open != 1 {
					t.Errorf("Put: %v, Close: %v", err, end)
				}
			})
		})
	}
}

// refusingReader is the Reader of a caller that may only put.
type refusingReader struct{ Reader }

func (refusingReader) ListShards(context.Context, *kinesis.ListShardsInput,
	...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	return nil, apiError("AccessDeniedException", "not authorized")
}

// expiringClient is a stream with a client that has the given credentials.
type expiringClient struct {
	*stream
	canExpire bool
}

func (c expiringClient) Options() kinesis.Options {
	return kinesis.Options{Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", CanExpire: c.canExpire}, nil
		})}
}

// The producer waits while the SDK renews a token. A token from the environment has expired for
// good.
func TestExpiredToken(t *testing.T) {
	for _, renewed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{fault: denied("ExpiredTokenException", 1, 2)}
			p, ctx := s.openUnits(t, func(c *Config) {
				c.Journal, c.Kinesis = &memoryJournal{}, expiringClient{s, renewed}
			})
			put(t, p, ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")}, nil)
			err := p.Close(ctx)
			if halted := errors.Is(err, ErrHalted); halted == renewed || renewed && err != nil {
				t.Errorf("renewed %v: %v", renewed, err)
			}
		})
	}
}

// expiredReader is a Reader with an expired token.
type expiredReader struct {
	expiringClient
	Reader
	lists *int
}

func (r expiredReader) ListShards(context.Context, *kinesis.ListShardsInput,
	...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	*r.lists++
	return nil, apiError("ExpiredTokenException", "The security token included in the request is expired")
}

// DescribeStreamSummary is the call that reads the record limit.
func (r expiredReader) DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
	...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	return nil, apiError("ExpiredTokenException", "The security token included in the request is expired")
}

// A token that has expired for good ends the wait for the shards and for the record limit, as it
// ends puts.
func TestExpiredTokenOfTheReader(t *testing.T) {
	eachOrderByShard(t, func(t *testing.T, order Order) {
		for _, journal := range []Journal{nil, &memoryJournal{}} {
			s, lists := &stream{}, 0
			p, ctx := s.openUnits(t, func(c *Config) {
				c.Order, c.Journal = order, journal
				c.Reader = expiredReader{expiringClient: expiringClient{s, false}, lists: &lists}
			})
			err := p.PutFunc(ctx, runnel.Record{PartitionKey: "a", Data: []byte("1")}, nil)
			brief, cancel := context.WithTimeout(ctx, time.Minute)
			end := p.Close(brief)
			cancel()
			if !errors.Is(errors.Join(err, end), ErrRefusedCaller) || lists == 0 {
				t.Errorf("journal %v: Put: %v, Close: %v, after %d lists", journal != nil, err, end, lists)
			}
			if halted := errors.Is(end, ErrHalted); halted != (journal != nil) {
				t.Errorf("journal %v: Close: %v", journal != nil, end)
			}
		}
	})
	t.Run("limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, lists := &stream{}, 0
			p, ctx := s.openUnits(t, func(c *Config) {
				c.Reader = expiredReader{expiringClient: expiringClient{s, false}, lists: &lists}
			})
			brief, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := p.PutFunc(brief, sized(2<<20), nil); !errors.Is(err, ErrTooLarge) {
				t.Errorf("Put: %v", err)
			}
			closeNow(t, p, ctx)
		})
	})
}
