package pages

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// meter models a server's limit on the calls of a shard. AWS does not document its own.
type meter interface{ take(now time.Duration) bool }

// bucket holds five calls and fills evenly, as runnel's server does.
type bucket struct {
	used float64
	at   time.Duration
}

func (b *bucket) take(now time.Duration) bool {
	b.used = max(0, b.used-5*(now-b.at).Seconds())
	if b.at = now; b.used > 4 {
		return false
	}
	b.used++
	return true
}

// clocked allows five calls in each second of its clock.
type clocked struct {
	used   int
	second time.Duration
}

func (f *clocked) take(now time.Duration) bool {
	if s := now.Truncate(time.Second); s != f.second {
		f.second, f.used = s, 0
	}
	f.used++
	return f.used <= 5
}

// rolling allows five calls in any second. With all set the refused ones count.
type rolling struct {
	all   bool
	times []time.Duration
}

func (s *rolling) take(now time.Duration) bool {
	for len(s.times) > 0 && s.times[0] <= now-time.Second {
		s.times = s.times[1:]
	}
	ok := len(s.times) < 5
	if ok || s.all {
		s.times = append(s.times, now)
	}
	return ok
}

var meters = map[string]func() meter{
	"bucket":              func() meter { return &bucket{} },
	"seconds of a clock":  func() meter { return &clocked{} },
	"any second":          func() meter { return &rolling{} },
	"any second, refused": func() meter { return &rolling{all: true} },
}

// reader is an application's reader of the shard: one with a budget, or a client that calls at a
// fixed distance.
type reader struct {
	budget     *Budget
	every      time.Duration
	begin, end time.Duration

	answered, refused int // in the time of interest

	at   time.Duration // of its next step
	step int
	call call
	ok   bool
}

func (r *reader) calls() int { return r.answered + r.refused }

// simulation lets readers of one shard call a server whose limit is the meter.
type simulation struct {
	meter   meter
	readers []*reader
	random  *rand.Rand
	delay   func(*rand.Rand) time.Duration // of one way
}

var epoch = time.Unix(1_000_000, 0)

// run simulates up to a time and counts the calls from another time on.
func (s *simulation) run(from, until time.Duration) {
	for _, r := range s.readers {
		r.at = r.begin + time.Duration(s.random.Int64N(int64(time.Second)))
	}
	for {
		r := s.readers[0]
		for _, other := range s.readers {
			if other.at < r.at {
				r = other
			}
		}
		switch {
		case r.at > until:
			return
		case r.end > 0 && r.at > r.end:
			r.at = until + 1
		default:
			s.next(r, from)
		}
	}
}

// next executes the next step of a reader: it sends a call, the server counts it, its answer comes.
func (s *simulation) next(r *reader, from time.Duration) {
	now := epoch.Add(r.at)
	switch r.step {
	case 0:
		r.call = call{sent: now}
		if r.budget != nil {
			c, wait := r.budget.take(now)
			if r.call = c; wait > 0 {
				r.at += wait
				return
			}
		}
		r.at += s.delay(s.random)
	case 1:
		r.ok = s.meter.take(r.at)
		switch {
		case r.at < from:
		case r.ok:
			r.answered++
		default:
			r.refused++
		}
		r.at += s.delay(s.random)
	default:
		switch {
		case r.budget == nil:
			r.at = max(r.at, r.call.sent.Sub(epoch)+r.every)
		case r.ok:
			r.budget.answer(r.call, now, 1, 100)
		default:
			r.budget.refuse(r.call, now)
		}
	}
	r.step = (r.step + 1) % 3
}

// here is a server on the same machine, near a network with delays of some milliseconds, and far one
// with a delay of up to 300 ms now and then.
func here(*rand.Rand) time.Duration { return 200 * time.Microsecond }

func near(r *rand.Rand) time.Duration {
	return time.Millisecond + time.Duration(r.ExpFloat64()*float64(4*time.Millisecond))
}

func far(r *rand.Rand) time.Duration {
	if r.IntN(10) == 0 {
		return time.Duration(r.Int64N(int64(300 * time.Millisecond)))
	}
	return near(r)
}

// budgets makes readers that begin 20 s after one another.
func budgets(n int, random *rand.Rand, limits Limits) (readers []*reader) {
	for i := range n {
		b := NewBudget(limits)
		b.random = random
		readers = append(readers, &reader{budget: b, begin: time.Duration(i) * 20 * time.Second})
	}
	return readers
}

// overSeeds calls f for each kind of server with some seeds.
func overSeeds(t *testing.T, f func(t *testing.T, m meter, random *rand.Rand)) {
	for name, m := range meters {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				f(t, m(), rand.New(rand.NewPCG(seed, 7)))
			})
		}
	}
}

// A reader that has the shard for itself is never throttled, however the network's delays vary, and
// has nearly all of the five calls a second.
func TestBudgetAlone(t *testing.T) {
	for name, delay := range map[string]func(*rand.Rand) time.Duration{
		"here": here, "near": near, "far": far,
	} {
		t.Run(name, func(t *testing.T) {
			overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
				s := simulation{m, budgets(1, random, AWS), random, delay}
				s.run(0, 10*time.Minute)
				r := s.readers[0]
				if rate := float64(r.answered) / 600; r.refused > 0 || rate < 4.1 {
					t.Errorf("%d calls were throttled, %.2f a second were answered", r.refused, rate)
				}
			})
		})
	}
}

// The readers of several applications share a shard: few calls are throttled, most of the five
// calls are used, and the shares are near each other. With two applications each has 40 % or more.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		n         int
		delay     func(*rand.Rand) time.Duration
		throttled float64 // at most, of all calls
		share     float64 // at least, of the answered calls
	}{
		{2, here, 0.015, 0.40},
		{2, near, 0.015, 0.40},
		{3, near, 0.025, 0.18},
		{5, near, 0.04, 0.10},
	} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			most, least := 0.0, 1.0
			defer func() {
				t.Logf("at most %.2f %% throttled, the least share %.1f %%", 100*most, 100*least)
			}()
			overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
				s := simulation{m, budgets(c.n, random, AWS), random, c.delay}
				begin := s.readers[c.n-1].begin + 2*time.Minute
				s.run(begin, begin+10*time.Minute)
				calls, answered := 0, 0
				for _, r := range s.readers {
					calls, answered = calls+r.calls(), answered+r.answered
				}
				part := 1 - float64(answered)/float64(calls)
				if most = max(most, part); part > c.throttled {
					t.Errorf("%.2f %% were throttled", 100*part)
				}
				if rate := float64(answered) / 600; rate < 4 {
					t.Errorf("%.2f calls a second were answered", rate)
				}
				for i, r := range s.readers {
					share := float64(r.answered) / float64(answered)
					if least = min(least, share); share < c.share {
						t.Errorf("reader %d has %.1f %%", i, 100*share)
					}
				}
			})
		})
	}
}

// A client that does not adapt keeps its calls, one a second like the Java KCL's, and the budget
// has most of the others. Beside a client that takes all five it makes few calls, and gets some.
func TestSharesWithOtherClients(t *testing.T) {
	overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
		s := simulation{m, budgets(1, random, AWS), random, near}
		s.readers = append(s.readers, &reader{every: time.Second, begin: time.Minute})
		s.run(3*time.Minute, 13*time.Minute)
		ours, other := s.readers[0], s.readers[1]
		if rate := float64(ours.answered) / 600; rate < 2.5 {
			t.Errorf("%.2f calls a second were answered", rate)
		}
		if part := float64(ours.refused) / float64(ours.calls()); part > 0.03 {
			t.Errorf("%.2f %% of ours were throttled", 100*part)
		}
		t.Logf("throttled: ours %.2f %%, the other's %.2f %%; %.2f calls a second",
			100*float64(ours.refused)/float64(ours.calls()),
			100*float64(other.refused)/float64(other.calls()), float64(ours.answered)/600)
	})
	overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
		s := simulation{m, budgets(1, random, AWS), random, near}
		s.readers = append(s.readers, &reader{every: 200 * time.Millisecond, begin: time.Minute})
		s.run(3*time.Minute, 13*time.Minute)
		r := s.readers[0]
		t.Logf("%d answered, %d refused", r.answered, r.refused)
		if calls := float64(r.calls()) / 600; calls > 1.5 {
			t.Errorf("%.2f calls a second beside a client that takes all", calls)
		}
	})
}

// When the other reader stops, the rate is back at the highest within two minutes and a half.
func TestBudgetGrowsBack(t *testing.T) {
	overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
		s := simulation{m, budgets(2, random, AWS), random, near}
		s.readers[1].end = 10 * time.Minute
		s.run(12*time.Minute+30*time.Second, 13*time.Minute+30*time.Second)
		if r := s.readers[0]; r.answered < 280 || r.refused > 0 {
			t.Errorf("%d calls in a minute, %d throttled", r.answered, r.refused)
		}
	})
}

// A budget without limits learns a server's limit from its throttles.
func TestBudgetWithoutLimits(t *testing.T) {
	for n := 1; n <= 2; n++ {
		overSeeds(t, func(t *testing.T, m meter, random *rand.Rand) {
			s := simulation{m, budgets(n, random, Limits{}), random, near}
			s.run(2*time.Minute, 12*time.Minute)
			calls, answered := 0, 0
			for _, r := range s.readers {
				calls, answered = calls+r.calls(), answered+r.answered
			}
			if answered < 4*600 || float64(answered) < 0.96*float64(calls) {
				t.Errorf("%d readers: %.2f calls a second, %.2f %% throttled", n,
					float64(answered)/600, 100-100*float64(answered)/float64(calls))
			}
		})
	}
}
