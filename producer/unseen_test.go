package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
)

func refuseAll(context.Context, int, *kinesis.PutRecordsInput) (bool, error) {
	return false, apiError("ResourceNotFoundException", "no stream orders")
}

// Close and Flush report the undelivered records that no code has looked at, each once.
func TestUnseenResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{fault: refuseAll}
		p, ctx := s.open(t, nil)
		put := func(key string) *Future {
			future, err := p.Put(ctx, runnel.Record{PartitionKey: key, Data: []byte("1")})
			if err != nil {
				t.Fatal(err)
			}
			return future
		}
		want := func(err error, count int, first string) {
			t.Helper()
			var unseen *UnseenError
			switch {
			case count == 0 && err == nil:
			case !errors.As(err, &unseen) || unseen.Count != count || unseen.Stream != "orders" ||
				unseen.First.PartitionKey != first:
				t.Errorf("%v, want %d records, the first of key %s", err, count, first)
			case !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no stream orders"):
				t.Errorf("the first cause is missing: %v", err)
			}
		}
		seen := put("a")
		put("b")
		last := put("c")
		if _, err := seen.Wait(ctx); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		want(p.Flush(ctx), 2, "b")
		want(p.Flush(ctx), 0, "") // each is reported once
		if _, err := last.Wait(ctx); err == nil {
			t.Error("a result is gone once Flush has reported it")
		}
		late := put("d")
		put("e")
		<-put("f").Done()
		synctest.Wait() // e is refused before g: calls for other keys run side by side
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "g"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: "h"}, func(Result) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := late.Wait(ctx); err == nil {
			t.Error("no error")
		}
		want(p.Close(ctx), 2, "e")
		want(p.Close(ctx), 0, "")
	})
}

// A Wait that ended before the result came does not count as a look. A Wait that is still running
// does.
func TestUnseenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Second, fault: refuseAll}
		p, ctx := s.open(t, nil)
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		gone, err := p.Put(ctx, runnel.Record{PartitionKey: "a"})
		if err != nil {
			t.Fatal(err)
		}
		waits, err := p.Put(ctx, runnel.Record{PartitionKey: "b"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gone.Wait(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		go waits.Wait(ctx) // still running at the Close
		synctest.Wait()
		var unseen *UnseenError
		if err := p.Close(ctx); !errors.As(err, &unseen) || unseen.Count != 1 ||
			unseen.First.PartitionKey != "a" {
			t.Error(err)
		}
	})
}

// With OnResult every result counts as looked at. Among very many unseen results the first is still
// known.
func TestUnseenMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, looked := range []bool{true, false} {
			s := &stream{fault: refuseAll}
			p, ctx := s.open(t, func(c *Config) {
				if looked {
					c.OnResult = func(runnel.Record, Result) {}
				}
			})
			var futures []*Future
			for i := range 3 * maxFirsts {
				f, err := p.Put(ctx, runnel.Record{PartitionKey: fmt.Sprint(i)})
				if err != nil {
					t.Fatal(err)
				}
				futures = append(futures, f)
			}
			synctest.Wait()
			for _, f := range futures[:2*maxFirsts] {
				_, _ = f.Wait(ctx)
			}
			var unseen *UnseenError
			err := p.Close(ctx)
			if looked && err != nil || !looked && (!errors.As(err, &unseen) ||
				unseen.Count != maxFirsts || unseen.First == nil) {
				t.Errorf("looked %v: %v", looked, err)
			}
		}
	})
}

// Records that Close leaves for lack of time are in its own error, and not in an UnseenError.
func TestUnseenAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Hour}
		p, ctx := s.open(t, nil)
		if _, err := p.Put(ctx, runnel.Record{PartitionKey: "a"}); err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var unseen *UnseenError
		if err := p.Close(brief); err == nil || errors.As(err, &unseen) {
			t.Error(err)
		}
	})
}
