package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/retry"
)

var (
	errExpired   = &types.ExpiredIteratorException{}
	errThrottled = &types.ProvisionedThroughputExceededException{}
	errOutage    = errors.New("connection reset")
	errDenied    = &smithy.GenericAPIError{Code: "AccessDeniedException"}
	errMissing   = &types.ResourceNotFoundException{}
	errOther     = errors.New("another stream")
)

// cursor makes a cursor over the fake's shard.
func (f *fake) cursor(from runnel.From, change ...func(*Config)) *Cursor {
	cfg := Config{
		Kinesis: awscbor.New(f), Stream: "s", Shard: "a", From: from,
		Backoff: retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second},
	}
	for _, c := range change {
		c(&cfg)
	}
	return New(cfg)
}

func of(f *fake) func(*Config) { return func(c *Config) { c.Of = f } }

// Whatever error a call meets, each record comes once and in order, from any beginning.
func TestEachRecordComesOnce(t *testing.T) {
	for _, failure := range []error{errExpired, errThrottled, errOutage} {
		for _, c := range []struct {
			from runnel.From
			want string
		}{
			{runnel.FromOldest(), "0 1 2 3 4 5 6 7 8"},
			{runnel.FromSequence("103"), "3 4 5 6 7 8"},
			{runnel.FromTime(time.Unix(0, 0)), "0 1 2 3 4 5 6 7 8"},
			{runnel.FromLatest(), "5 6 7 8"},
		} {
			t.Run(fmt.Sprintf("%T %s", failure, c.from), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fake{}
					f.put(5)
					<-time.After(5 * time.Second)
					n := 0
					f.fault = func(op string) error {
						if n++; n == 2 { // before the first page
							f.put(4)
						}
						if n%4 >= 2 {
							return failure
						}
						return nil
					}
					cursor, got := f.cursor(c.from), ""
					for range 12 {
						page, err := cursor.Next(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						got += numbers(page) + " "
					}
					if got = strings.Join(strings.Fields(got), " "); got != c.want {
						t.Errorf("got %q, want %q, by %q", got, c.want, f.calls)
					}
				})
			})
		}
	}
}

// An iterator at LATEST that is lost before a record comes is made again at the server's time, so a
// wrong clock of ours neither skips records nor brings old ones. A server that says no time leaves
// ours.
func TestLatestIsPinnedByTheServersClock(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		for _, lost := range []error{errExpired, errOutage} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{skew: skew, noDate: skew == 0}
				f.put(3)
				<-time.After(5 * time.Second)
				f.fault = func(op string) error {
					if op == "seek" {
						return nil
					}
					f.fault = nil
					<-time.After(5 * time.Second)
					f.put(1)
					return lost
				}
				page, err := f.cursor(runnel.FromLatest()).Next(t.Context())
				if got := numbers(page); got != "3" || err != nil {
					t.Errorf("skew %s, %v: got %q, %v; want the record put meanwhile, by %q", skew,
						lost, got, err, f.calls)
				}
			})
		}
	}
}

// Attempts limits the attempts at one page, and a renewed iterator is none. An error that no
// further attempt mends is returned at once, unless Persist is set.
func TestAttempts(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures []error
		attempts int
		persist  bool
		want     error
	}{
		{"one", []error{errOutage}, 1, false, errOutage},
		{"throttled", []error{errThrottled}, 1, false, errThrottled},
		{"renewed", []error{errExpired}, 1, false, nil},
		{"expired at once", []error{errExpired, errExpired}, 1, false, errExpired},
		{"renewed and failed", []error{errExpired, errOutage}, 1, false, errOutage},
		{"two of three", []error{errOutage, errThrottled}, 3, false, nil},
		{"three of three", []error{errOutage, errThrottled, errOutage}, 3, false, errOutage},
		{"no limit", []error{errOutage, errOutage, errOutage, errOutage}, 0, false, nil},
		{"denied", []error{errDenied}, 0, false, errDenied},
		{"denied, persistent", []error{errDenied, errDenied}, 0, true, nil},
		{"missing", []error{errMissing}, 0, false, errMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, left, reported := &fake{}, c.failures, 0
				f.put(1)
				f.fault = func(op string) error {
					if op == "seek" || len(left) == 0 {
						return nil
					}
					err := left[0]
					left = left[1:]
					return err
				}
				cursor := f.cursor(runnel.FromOldest(), func(cfg *Config) {
					cfg.Attempts, cfg.Persist = c.attempts, c.persist
					cfg.OnFailure = func(error, int) { reported++ }
				})
				page, err := cursor.Next(t.Context())
				if !errors.Is(err, c.want) || (c.want == nil) != (numbers(page) == "0") {
					t.Errorf("got %q, %v, want %v", numbers(page), err, c.want)
				}
				want := 0
				for i, failure := range c.failures {
					returned := i == len(c.failures)-1 && c.want != nil
					if (failure == errOutage || failure == errDenied) && !returned {
						want++
					}
				}
				if reported != want {
					t.Errorf("%d failures were reported, want %d", reported, want)
				}
			})
		})
	}
}

// A shard that the stream no longer lists ends, with Gone, and again with each further call. A
// shard that is listed is asked for again.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{shards: []runnel.Shard{{ID: "a"}}}
		f.put(1)
		n := 0
		f.fault = func(string) error {
			if n++; n < 3 {
				return errMissing
			}
			return nil
		}
		cursor := f.cursor(runnel.FromOldest(), of(f))
		if page, err := cursor.Next(t.Context()); numbers(page) != "0" || err != nil {
			t.Errorf("listed: %+v, %v", page, err)
		}
		f.shards = []runnel.Shard{{ID: "b"}}
		f.fault = func(string) error { return errMissing }
		for range 2 {
			page, err := cursor.Next(t.Context())
			if !page.Gone || !page.Ended || len(page.Records) > 0 || err != nil {
				t.Errorf("not listed: %+v, %v", page, err)
			}
		}
		// A stream that was made again is the lasting error.
		f.same, f.lasting = errOther, true
		if _, err := f.cursor(runnel.FromOldest(), of(f)).Next(t.Context()); err != errOther {
			t.Errorf("another stream: %v", err)
		}
		f.fault = nil
		checked := func(c *Config) { c.Checked = true }
		_, err := f.cursor(runnel.FromOldest(), of(f), checked).Next(t.Context())
		if err != errOther {
			t.Errorf("another stream, without an error of a call: %v", err)
		}
	})
}

// The page at a shard's end comes again without its records.
func TestEnd(t *testing.T) {
	f := &fake{closed: true}
	f.put(2)
	cursor := f.cursor(runnel.FromOldest())
	for i, want := range []string{"0 1", "", ""} {
		page, err := cursor.Next(t.Context())
		if err != nil || !page.Ended || numbers(page) != want {
			t.Errorf("page %d: %+v, %v", i, page, err)
		}
	}
	if len(f.calls) != 2 {
		t.Errorf("calls: %q", f.calls)
	}
}

// Await listens to its context, and DueBy brings the next read forward.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		cursor := f.cursor(runnel.FromOldest(), func(c *Config) {
			c.Pace = Pace{Least: time.Second, Idle: time.Minute}
		})
		began := time.Now()
		for range 3 {
			if _, err := cursor.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three reads took %s", took)
		}
		cursor.DueBy(time.Now().Add(time.Second))
		cursor.DueBy(time.Now().Add(time.Hour))
		if _, err := cursor.Next(t.Context()); err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("the fourth read came after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOther)
		defer cancel()
		if _, err := cursor.Next(ctx); err != errOther {
			t.Errorf("got %v, want the cause", err)
		}
	})
}
