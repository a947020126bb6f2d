package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// fanoutTest runs a test over a shard of a young stream, in virtual time.
func fanoutTest(t *testing.T, run func(*testing.T, *fakeConsumer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run(t, &fakeConsumer{fake: &fake{
			atEndOnly: true, horizon: shardmap.Horizon{Created: time.Now()},
		}})
	})
}

// read reads until a page satisfies done, and returns the records by their places in the shard.
func read(t *testing.T, s Source, done func(Page) bool) string {
	t.Helper()
	var all []string
	for range 100_000 {
		page, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(page); got != "" {
			all = append(all, got)
		}
		if done(page) {
			return strings.Join(all, " ")
		}
	}
	t.Fatalf("no end after %q", all)
	return ""
}

func atTip(p Page) bool { return p.Behind == 0 && len(p.Records) == 0 }

func until(place int) func(Page) bool {
	return func(p Page) bool {
		return strings.HasSuffix(" "+numbers(p), fmt.Sprint(" ", place))
	}
}

// A subscription begins where an iterator would, and the next one goes on without a gap or a
// double: after the five minutes, after a cut, and when no record was read yet.
func TestSubscriptionGoesOn(t *testing.T) {
	for _, c := range []struct {
		from   runnel.From
		want   string
		starts string
	}{
		{runnel.FromOldest(), "0 1 2 3 4", "TRIM_HORIZON AT_SEQUENCE_NUMBER104"},
		{runnel.FromSequence("103"), "3 4", "AT_SEQUENCE_NUMBER103 AT_SEQUENCE_NUMBER104"},
		{runnel.FromTime(time.Unix(0, 0)), "0 1 2 3 4", "AT_TIMESTAMP AT_SEQUENCE_NUMBER104"},
		{runnel.FromLatest(), "", "LATEST AFTER_SEQUENCE_NUMBER104"},
	} {
		for _, cut := range []bool{false, true} {
			fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
				f.add(5)
				<-time.After(5 * time.Second)
				s := f.source(t, c.from)
				if got := read(t, s, atTip); got != c.want {
					t.Errorf("%s: got %q, want %q", c.from, got, c.want)
				}
				if cut {
					f.cut(nil)
				} else {
					began := time.Now()
					for time.Since(began) < 5*time.Minute {
						read(t, s, atTip)
					}
				}
				f.add(3)
				if got := read(t, s, until(7)); got != "5 6 7" {
					t.Errorf("%s: then got %q", c.from, got)
				}
				if got := strings.Join(f.starts, " "); got != c.starts {
					t.Errorf("%s: the subscriptions began at %s, want %s", c.from, got, c.starts)
				}
			})
		}
	}
}

// A new subscription waits for five seconds after the start of the last one, so it is not refused.
func TestSubscriptionWaitsForItsTurn(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		s := f.source(t, runnel.FromOldest())
		began := time.Now()
		read(t, s, until(0))
		f.cut(errOutage)
		f.add(1)
		read(t, s, until(1))
		if took := time.Since(began); len(f.starts) != 2 || took != takeOverAfter {
			t.Errorf("%d subscriptions in %s", len(f.starts), took)
		}
		if len(f.failed) > 0 {
			t.Errorf("a cut stream was reported: %v", f.failed)
		}
	})
}

// The subscription of the shard's last owner, which has just begun, refuses the next owner's for
// five seconds. That is waited out and not reported; refusals without an end are reported.
func TestResourceInUseIsWaitedOut(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		f.began = time.Now()
		began := time.Now()
		read(t, f.source(t, runnel.FromOldest()), until(0))
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(f.failed) > 0 {
			t.Errorf("reported: %v", f.failed)
		}
		f.cut(nil)
		f.refuse = func() error {
			if time.Since(began) < 40*time.Second {
				return errInUse
			}
			return nil
		}
		f.add(1)
		s := f.source(t, runnel.FromSequence("101"))
		read(t, s, until(1))
		if n := len(f.failed); n < 10 || n > 35 {
			t.Errorf("%d refusals were reported", n)
		}
	})
}

// A reader whose subscription is taken over says so when it asks whether it still holds the shard,
// and does not subscribe if it does not.
func TestTakenOver(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		lost := false
		s := f.source(t, runnel.FromOldest(), func(fan *Fanout) {
			fan.Held = func(_ context.Context, taken bool) error {
				f.held = append(f.held, taken)
				if lost {
					return errors.New("lost")
				}
				return nil
			}
		})
		read(t, s, atTip)
		<-time.After(10 * time.Second)
		lost = true
		other, _, err := f.Subscribe(t.Context(), &kinesis.SubscribeToShardInput{
			StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeLatest},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for err == nil {
			_, err = s.Next(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) || len(f.starts) != 2 {
			t.Errorf("%v after %d subscriptions", err, len(f.starts))
		}
		if f.held[0] || len(f.held) < 2 || !f.held[1] {
			t.Errorf("it asked with taken being %v", f.held)
		}
		lost = false
		f.add(1)
		if got := read(t, s, until(1)); got != "1" {
			t.Errorf("when it holds the shard again: %q", got)
		}
		_ = other.Close()
	})
}

// A connection without an event for half a minute is dead. The time in which the caller works does
// not count.
func TestSilence(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		s := f.source(t, runnel.FromOldest())
		read(t, s, until(0))
		<-time.After(2 * time.Minute)
		read(t, s, atTip)
		if len(f.starts) != 1 {
			t.Errorf("a slow caller has %d subscriptions", len(f.starts))
		}
		f.mu.Lock()
		f.silent = true
		f.mu.Unlock()
		began := time.Now()
		go func() {
			<-time.After(longestSilence + time.Second)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.silent = false
		}()
		for len(f.starts) < 2 && time.Since(began) < time.Minute {
			read(t, s, atTip)
		}
		took := time.Since(began)
		if took < longestSilence || took > longestSilence+2*time.Second {
			t.Errorf("%d subscriptions, the second after %s", len(f.starts), took)
		}
		if len(f.failed) != 1 || !errors.Is(f.failed[0], errSilent) {
			t.Errorf("reported: %v", f.failed)
		}
	})
}

// Between two events a page without records comes as often as with polling, with what is known
// from the last event. None comes before the first event.
func TestIdlePages(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		f.silent = true
		began := time.Now()
		time.AfterFunc(10*time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.silent = false
		})
		s := f.source(t, runnel.FromOldest())
		first, err := s.Next(t.Context())
		if err != nil || numbers(first) != "0" || time.Since(began) < 10*time.Second {
			t.Errorf("%+v, %v after %s", first, err, time.Since(began))
		}
		began = time.Now()
		for range 10 {
			page, err := s.Next(t.Context())
			if err != nil || page.Behind != first.Behind || !page.Complete.Equal(first.Complete) ||
				len(page.Records) > 0 {
				t.Errorf("%+v after %+v, %v", page, first, err)
			}
		}
		if took := time.Since(began); took != 2500*time.Millisecond {
			t.Errorf("ten pages took %s", took)
		}
	})
}

// With OrPoll a source that can have no subscription polls: at once if the consumer is refused,
// else after 30 seconds. It goes on at the same record, and subscribes again when it can.
func TestOrPoll(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault error
		after time.Duration
	}{
		{"refused", &smithy.GenericAPIError{Code: "AccessDeniedException"}, 0},
		{"unknown", &smithy.GenericAPIError{
			Code: "UnknownOperationException", Fault: smithy.FaultClient,
		}, 0},
		{"too many", fmt.Errorf("%w: %w", ErrNoConsumer, &types.LimitExceededException{}), 0},
		{"pending", ErrPending, patience},
		{"throttled", &types.LimitExceededException{}, patience},
		{"an outage", errOutage, patience},
	} {
		t.Run(c.name, func(t *testing.T) {
			fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
				f.add(3)
				f.ready = c.fault
				s := f.source(t, runnel.FromOldest(), orPoll)
				began := time.Now()
				if got := read(t, s, until(2)); got != "0 1 2" {
					t.Errorf("polling: %q", got)
				}
				if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
					t.Errorf("it polled after %s, want %s", took, c.after)
				}
				if len(f.polled) != 1 || !errors.Is(f.polled[0], c.fault) {
					t.Errorf("it said %v", f.polled)
				}
				f.ready = nil
				f.add(1)
				read(t, s, until(3))
				for len(f.starts) == 0 && time.Since(began) < 5*time.Minute {
					read(t, s, atTip)
				}
				f.add(2)
				if got := read(t, s, until(5)); got != "4 5" || len(f.starts) != 1 ||
					f.starts[0] != "AT_SEQUENCE_NUMBER103" {
					t.Errorf("then %q, subscribed at %v", got, f.starts)
				}
				if took := time.Since(began); took > patience+fanoutAgain+3*time.Second {
					t.Errorf("it subscribed after %s", took)
				}
				gets := len(f.calls)
				<-time.After(time.Minute)
				read(t, s, atTip)
				if len(f.calls) > gets {
					t.Errorf("it polls beside the subscription: %v", f.calls[gets:])
				}
			})
		})
	}
}

// Without OrPoll a source tries again until it can subscribe, and reports each failure.
func TestWithoutOrPoll(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		f.ready = errDenied
		time.AfterFunc(10*time.Minute, func() { f.becomes(nil) })
		began := time.Now()
		read(t, f.source(t, runnel.FromOldest()), until(0))
		if took := time.Since(began); took < 10*time.Minute || len(f.failed) < 500 ||
			len(f.polled) > 0 {
			t.Errorf("after %s: %d failures, polled %v", took, len(f.failed), f.polled)
		}
	})
}

// The API's errors mean the same as for polling: a shard that is gone ends, and a stream that was
// made again ends the reading.
func TestSubscriptionToWhatIsGone(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.refuse = func() error { return errMissing }
		f.shards = []runnel.Shard{{ID: "b"}}
		page, err := f.source(t, runnel.FromOldest()).Next(t.Context())
		if err != nil || !page.Gone || !page.Ended {
			t.Errorf("a shard that is gone: %+v, %v", page, err)
		}
		f.same, f.lasting = errOther, true
		if _, err = f.source(t, runnel.FromOldest()).Next(t.Context()); !errors.Is(err, errOther) {
			t.Errorf("another stream: %v", err)
		}
	})
}

// An event without a continuation and without children is not taken for the shard's end: polling
// finds out.
func TestDoubtfulEnd(t *testing.T) {
	for _, closed := range []bool{false, true} {
		fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
			f.add(2)
			f.noNext = true
			if closed {
				f.close()
			}
			s := f.source(t, runnel.FromOldest())
			if got := read(t, s, func(p Page) bool { return p.Ended || atTip(p) }); got != "0 1" {
				t.Errorf("closed %v: %q", closed, got)
			}
			if page, _ := s.Next(t.Context()); page.Ended != closed {
				t.Errorf("closed %v: ended %v", closed, page.Ended)
			}
		})
	}
}

// Records that were removed unread are a gap as with polling: when the reader was away, when a
// live subscription was overtaken, and not if the last record is still there.
func TestGapOfSubscription(t *testing.T) {
	for _, c := range []struct {
		name string
		away time.Duration
		cut  bool
		left int
		want bool
	}{
		{"cut, and removed", 30 * time.Hour, true, 1, true},
		{"cut, and all removed", 30 * time.Hour, true, 0, true},
		{"cut, and the last record is there", 30 * time.Hour, true, 3, false},
		{"cut, and removed though too young", time.Hour, true, 1, true},
		{"a slow caller is overtaken", 30 * time.Hour, false, 1, true},
		{"a slow caller, and the last record is there", 30 * time.Hour, false, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
				f.add(4)
				f.skew = 3 * time.Hour
				s := f.source(t, runnel.FromOldest())
				if page, err := s.Next(t.Context()); err != nil || numbers(page) != "0 1" {
					t.Fatalf("%+v, %v", page, err)
				}
				<-time.After(c.away)
				f.trim(c.left)
				if c.cut {
					f.cut(nil)
				}
				f.close()
				gap, want := false, "2 3"
				if c.left < 2 {
					want = strings.TrimSpace(strings.Repeat("3", c.left))
				}
				got := read(t, s, func(p Page) bool {
					gap = gap || p.Gap
					return p.Ended
				})
				if gap != c.want || got != want {
					t.Errorf("gap is %v, and the records are %q, want %q", gap, got, want)
				}
			})
		})
	}
}

// A failure that passes within 30 seconds does not make a source poll, however long it has read.
func TestShortFailureDoesNotPoll(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.add(1)
		s := f.source(t, runnel.FromOldest(), orPoll)
		for began := time.Now(); time.Since(began) < 2*time.Minute; {
			read(t, s, atTip)
		}
		began := time.Now()
		f.refuse = func() error {
			if time.Since(began) < 20*time.Second {
				return errOutage
			}
			return nil
		}
		f.add(1)
		f.cut(nil)
		if got := read(t, s, until(1)); got != "1" || len(f.polled) > 0 {
			t.Errorf("got %q, polled for %v", got, f.polled)
		}
	})
}

// An event may have waited on its way. So an idle shard is known to be complete up to the start of
// the subscription, and not up to the event.
func TestCompleteOfSubscription(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.skew = 3 * time.Hour
		s := f.source(t, runnel.FromOldest())
		for range 2000 {
			page, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := f.began.Add(f.skew)
			if page.Complete.After(began) || page.Complete.Before(began.Add(-time.Second)) {
				t.Errorf("complete to %s, the subscription began at %s", page.Complete, began)
			}
		}
		if len(f.starts) < 2 {
			t.Error("there was one subscription only")
		}
	})
}

// A subscription at LATEST that breaks before its first event is begun again at the time of the
// first one, by the server's clock.
func TestSubscriptionAtLatestIsPinned(t *testing.T) {
	fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
		f.skew = time.Hour
		f.add(3)
		<-time.After(5 * time.Second)
		f.silent = true
		time.AfterFunc(10*time.Second, func() {
			f.add(2)
			f.cut(nil)
		})
		time.AfterFunc(11*time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.silent = false
		})
		got := read(t, f.source(t, runnel.FromLatest()), until(4))
		if starts := strings.Join(f.starts, " "); got != "3 4" || starts != "LATEST AT_TIMESTAMP" {
			t.Errorf("got %q by %s", got, starts)
		}
	})
}

// Both ways bring the same: the same records, gaps and ends, whatever happens on the way.
func TestBothWaysBringTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 20).Draw(rt, "steps")
		from := rapid.SampledFrom([]runnel.From{
			runnel.FromOldest(), runnel.FromLatest(), runnel.FromSequence("102"),
		}).Draw(rt, "from")
		var results [2]string
		for i := range results {
			fanoutTest(t, func(t *testing.T, f *fakeConsumer) {
				f.add(4)
				<-time.After(time.Minute)
				var s Source = New(f.config(from))
				if i == 1 {
					s = f.source(t, from)
				}
				results[i] = both(t, f, s, steps)
			})
		}
		if results[0] != results[1] {
			rt.Fatalf("polling brings %q, a subscription %q", results[0], results[1])
		}
	})
}

// both reads a shard while the steps happen to it, and returns what it brings.
func both(t *testing.T, f *fakeConsumer, s Source, steps []int) string {
	var got []string
	note := func(p Page) {
		if p.Gap {
			got = append(got, "gap")
		}
		got = append(got, strings.Fields(numbers(p))...)
		if p.Ended {
			got = append(got, fmt.Sprint("end ", p.Children))
		}
	}
	toTip := func() {
		read(t, s, func(p Page) bool {
			note(p)
			return p.Ended || p.Behind == 0
		})
	}
	toTip()
	for _, step := range steps {
		switch step {
		case 0, 1:
			f.add(1 + 3*step)
		case 2:
			if c, ok := s.(*Cursor); ok {
				c.iterator = ""
			} else if f.live != nil {
				f.cut([]error{nil, errOutage, errInUse}[len(got)%3])
			}
		case 3:
			<-time.After(7 * time.Minute)
		case 4:
			f.add(3)
			<-time.After(26 * time.Hour)
			f.trim(1)
		case 5:
			f.close()
		}
		toTip()
		toTip()
	}
	f.close()
	read(t, s, func(p Page) bool {
		note(p)
		return p.Ended
	})
	return strings.Join(got, " ")
}
