package serverclock

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// randomStep returns a step of seconds to years, to either side.
func randomStep(rng *rand.Rand) time.Duration {
	most := []time.Duration{time.Minute, 2 * time.Hour, 40 * day, 3 * year}[rng.IntN(4)]
	return time.Duration(rng.Int64N(int64(2*most))) - most
}

// pass lets time pass on a server with a call every minute.
func pass(c *Clock, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Until(end), time.Minute))
		settle(c)
	}
}

// old makes a machine that has been up for a day, with a server that has run for a minute.
func old(t *testing.T) (*machine, *Clock) {
	m := newMachine(t)
	m.booted = m.booted.Add(-day)
	c := m.open()
	pass(c, time.Minute)
	return m, c
}

// ahead returns how far the stamps are ahead of the system's clock.
func (m *machine) ahead(c *Clock) time.Duration {
	return settle(c).Sub(m.wall()).Round(time.Second)
}

// A step forward of more than an hour is followed once it has lasted ten minutes, in one piece.
func TestFollowsAStepThatLasts(t *testing.T) {
	for _, c := range []struct {
		by     time.Duration
		atOnce bool
	}{{time.Hour, true}, {time.Hour + time.Minute, false}, {2 * time.Hour, false}, {year, false}} {
		t.Run(c.by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, clock := old(t)
				if c.atOnce {
					m.step(c.by)
					if got := m.ahead(clock); got != 0 {
						t.Errorf("the stamps are %v ahead", got)
					}
					m.close(clock)
					return
				}
				for range 3 { // a glitch that comes again and again does not last
					m.step(c.by)
					settle(clock)
					pass(clock, 9*time.Minute)
					if got := m.ahead(clock); got != -c.by {
						t.Errorf("after nine minutes the stamps are %v ahead", got)
					}
					m.step(-c.by)
					pass(clock, 2*time.Minute)
					if got := m.ahead(clock); got != 0 {
						t.Errorf("corrected, the stamps are %v ahead", got)
					}
				}
				m.step(c.by)
				settle(clock)
				pass(clock, 5*time.Minute)
				m.step(2 * time.Minute) // another one
				settle(clock)
				pass(clock, 9*time.Minute)
				if got := m.ahead(clock); got != -c.by-2*time.Minute {
					t.Errorf("nine minutes after another step the stamps are %v ahead", got)
				}
				pass(clock, 2*time.Minute)
				if got := m.ahead(clock); got != 0 {
					t.Errorf("after ten minutes the stamps are %v ahead", got)
				}
				m.close(clock)
			})
		})
	}
}

// A step that was seen twice, with no look in between, may have been two steps.
func TestStepHasToBeSeenToLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := time.Duration(0)
		c := New(Config{
			Wall:   func() time.Time { return time.Now().Add(wall) },
			Logger: slog.New(slog.DiscardHandler),
		})
		wall = 3 * time.Hour
		c.Read()
		time.Sleep(20 * time.Minute)
		if behind := c.Now().Sub(time.Now().Add(wall)); behind != -3*time.Hour {
			t.Errorf("the stamps are %v ahead", behind)
		}
	})
}

// Elapsed time is even and goes on over restarts and kills, whatever is done to the system's clock.
func TestElapsedIsEven(t *testing.T) {
	for seed := range uint64(2 * soak()) {
		synctest.Test(t, func(t *testing.T) { elapsedIsEven(t, rand.New(rand.NewPCG(1, 1+seed))) })
	}
	t.Logf("soak: %d seeds", 2*soak())
}

func elapsedIsEven(t *testing.T, rng *rand.Rand) {
	m, c := old(t)
	start, began := time.Now(), c.Moment().Elapsed
	for i := range 200 {
		time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Minute))))
		switch i % 4 {
		case 0:
			m.step(randomStep(rng))
		case 1:
			m.die(c, m.disk.Crash(rng))
			c = m.open()
		case 2:
			m.close(c)
			time.Sleep(time.Hour)
			c = m.open()
		}
		want := time.Since(start)
		if got := time.Duration(c.Moment().Elapsed-began) * time.Millisecond; (got - want).Abs() >
			time.Second {
			t.Fatalf("%v have elapsed, the clock says %v", want, got)
		}
	}
	m.close(c)
}

// Over another boot, elapsed time and stamps follow the system's clock by up to 30 days, and not
// back. --accept-clock says that it is right.
func TestAnotherBoot(t *testing.T) {
	for _, c := range []struct {
		by             time.Duration
		accept         bool
		ahead, elapsed time.Duration
	}{
		{0, false, 0, 0},
		{time.Hour, false, 0, time.Hour},
		{29 * day, false, 0, 29 * day},
		{31 * day, false, -31 * day, 0},
		{year, false, -year, 0},
		{year, true, 0, year},
		{-time.Hour, false, time.Hour, 0},
		{-year, false, year, 0},
		{-year, true, year, 0},
	} {
		t.Run(fmt.Sprint(c.by, c.accept), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, clock := old(t)
				before := clock.Moment()
				m.close(clock)
				m.reboot()
				m.step(c.by)
				m.accept = c.accept
				clock = m.open()
				if got := m.ahead(clock); got != c.ahead {
					t.Errorf("the stamps are %v ahead, want %v", got, c.ahead)
				}
				elapsed := time.Duration(clock.Moment().Elapsed-before.Elapsed) * time.Millisecond
				if (elapsed - c.elapsed).Abs() > time.Second {
					t.Errorf("%v have elapsed, want %v", elapsed, c.elapsed)
				}
				if !clock.Moment().hold {
					t.Error("data expire in the first hour")
				}
				pass(clock, time.Hour)
				differs := c.ahead != 0
				if got := clock.Moment().hold; got != (differs && !c.accept) {
					t.Errorf("after an hour, nothing expires: %v", got)
				}
				if _, got, _ := clock.Difference(); got != differs {
					t.Errorf("after an hour, the clocks differ: %v", got)
				}
				if c.ahead == -year { // the system's clock stays refused, also over a restart
					m.close(clock)
					clock = m.open()
					pass(clock, time.Hour)
					if got := m.ahead(clock); got != -year {
						t.Errorf("after a restart the stamps are %v ahead", got)
					}
				}
				m.close(clock)
			})
		})
	}
}

// --accept-clock holds over restarts and boots, until the clock steps.
func TestAcceptedUntilTheNextStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := old(t)
		holds := func(what string, want bool) {
			t.Helper()
			pass(c, 61*time.Minute)
			if c.Moment().hold != want {
				t.Errorf("%s: nothing expires: %v", what, !want)
			}
		}
		m.step(-10 * day)
		holds("a step back", true)
		m.close(c)
		m.accept = true
		c = m.open()
		holds("accepted", false)
		m.close(c)
		m.accept = false
		c = m.open()
		holds("a restart", false)
		m.die(c, m.disk.Crash(rand.New(rand.NewPCG(1, 1))))
		m.reboot()
		time.Sleep(time.Hour)
		c = m.open()
		holds("a boot", false)
		m.step(-2 * time.Minute)
		holds("another step", true)
		m.close(c)
		if n := strings.Count(m.log.String(), "--accept-clock"); n < 2 {
			t.Errorf("the log names the way out %d times: %s", n, m.log.String())
		}
	})
}

// Whatever is done to the system's clock within a boot, no stamp expires before its age by true time.
func TestNothingExpiresEarly(t *testing.T) {
	for seed := range uint64(10 * soak()) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			m, c := old(t)
			type given struct {
				at    time.Time
				stamp int64
			}
			var all []given
			for range 120 {
				switch rng.IntN(6) {
				case 0:
					m.step(randomStep(rng))
				case 1:
					m.close(c)
					time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Hour))))
					c = m.open()
				case 2:
					m.die(c, m.disk.Crash(rng))
					c = m.open()
				case 3:
					time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Hour)))) // no call
				default:
					pass(c, time.Duration(rng.Int64N(int64(40*time.Minute))))
				}
				all = append(all, given{time.Now(), c.Read()})
				age := time.Duration(rng.Int64N(int64(48 * time.Hour)))
				moment := c.Moment()
				moment.hold = false // as if the clocks agreed
				horizon := moment.Horizon(age.Milliseconds())
				for _, g := range all {
					if g.stamp < horizon && time.Since(g.at) < age-time.Second {
						t.Fatalf("seed %d: a stamp that is %v old has expired at %v", seed,
							time.Since(g.at), age)
					}
				}
			}
			m.close(c)
		})
	}
	t.Logf("soak: %d seeds", 10*soak())
}

// After steps the horizon is exact to a minute: data do not stay for ever.
func TestHorizonIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := old(t)
		for _, by := range []time.Duration{year, -year, 3 * time.Hour, -time.Hour} {
			stamp := c.Read()
			m.step(by)
			pass(c, 30*time.Minute)
			moment := c.Moment()
			moment.hold = false
			early, late := moment.Horizon(31*60_000), moment.Horizon(26*60_000)
			if early > stamp || late < stamp {
				t.Errorf("after a step by %v, a stamp of 30 minutes ago is %d ms from the horizon "+
					"of 31 and %d from that of 26", by, stamp-early, stamp-late)
			}
		}
		m.close(c)
	})
}

// A boot with a clock that is ahead, and is set back later, has made nothing older than it is.
func TestOverratedBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := old(t)
		stamp := c.Read()
		m.close(c)
		m.reboot()
		time.Sleep(time.Hour) // this long the machine is down
		m.step(20 * day)
		c = m.open()
		pass(c, 30*time.Minute)
		later := c.Read()
		m.step(-20 * day)
		pass(c, 30*time.Minute)
		moment := c.Moment()
		moment.hold = false
		for _, w := range []struct {
			stamp int64
			age   time.Duration
		}{{stamp, 2 * time.Hour}, {later, 30 * time.Minute}} {
			young := moment.Horizon((w.age + 4*time.Minute).Milliseconds())
			old := moment.Horizon((w.age - 4*time.Minute).Milliseconds())
			if young > w.stamp || old < w.stamp {
				t.Errorf("a stamp of %v ago is %d ms from the horizon before, %d after", w.age,
					w.stamp-young, w.stamp-old)
			}
		}
		m.close(c)
	})
}

// A directory that has lost the clock's file goes on from the elapsed time of its data, and nothing
// becomes older by that.
func TestElapsedOfTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		now := time.Now().UnixMilli()
		c, err := Open(Config{
			Wall: m.wall, FS: m.disk, Dir: "data", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.NotBefore(now - 1000)
		c.ElapsedNotBefore(now + day.Milliseconds())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		moment := c.Moment()
		moment.hold = false
		if by := moment.Elapsed - now; by != day.Milliseconds() {
			t.Errorf("the elapsed time begins %d ms ahead", by)
		}
		if got := moment.Horizon(60_000); got > now-60_000 {
			t.Errorf("the horizon of a minute is %d ms ago", now-got)
		}
		m.close(c)
	})
}

// The past is bounded, and fits into a record.
func TestPastIsBounded(t *testing.T) {
	var p *past
	rng := rand.New(rand.NewPCG(3, 3))
	elapsed, stamp := int64(1), int64(1)
	for range 5000 {
		elapsed += rng.Int64N(3_600_000)
		stamp += rng.Int64N(7_200_000)
		p = p.with(elapsed, stamp, false)
	}
	r := record{number: 1, vouched: 1, ceiling: 2, boot: strings.Repeat("b", 70), past: p}
	if len(p.spans) != maxSpans || len(r.encode()) > slotEvery {
		t.Errorf("%d spans, a record of %d bytes", len(p.spans), len(r.encode()))
	}
	got, ok := decode(r.encode())
	if !ok || fmt.Sprint(got.past.spans) != fmt.Sprint(p.spans) {
		t.Errorf("the record is read as %+v, %v", got, ok)
	}
	p = p.with(elapsed+longestPast+1, stamp, true)
	if p = p.with(elapsed+2*longestPast+2, stamp, true); len(p.spans) > 2 {
		t.Errorf("%d spans are left after a year", len(p.spans))
	}
}

// A record of an older version is read, and one of this version by an older one: its first 104
// bytes are as before. A rest that does not belong to its head voids the record.
func TestOlderRecord(t *testing.T) {
	r := record{
		number: 3, vouched: 1000, ceiling: 2000, boot: "boot", since: time.Second,
		elapsed: 500, wall: 900, jump: jump{400, 30}, pace: waits, accepted: true,
		past: (*past)(nil).with(500, 1000, true),
	}
	p := r.encode()
	got, ok := decode(p)
	if !ok || fmt.Sprintf("%+v", got.past.spans) != fmt.Sprintf("%+v", r.past.spans) {
		t.Fatalf("%+v, %v", got, ok)
	}
	if got.past = r.past; got != r {
		t.Errorf("%+v is read as %+v", r, got)
	}
	for i := range p { // a torn or rotten record
		q := append([]byte(nil), p...)
		q[i] ^= 1
		if _, ok := decode(q); ok {
			t.Errorf("with byte %d changed, the record is valid", i)
		}
	}
	disk := vfs.NewMem()
	if err := disk.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(path.Join("data", FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(olderRecord(r), 0); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := readRecord(f); !ok || err != nil || got.vouched != 1000 ||
		got.since != time.Second || got.boot != "boot" || got.past != nil {
		t.Errorf("an older record is read as %+v, %v, %v", got, ok, err)
	}
	_ = f.Close()
}

// A directory of an older version may have followed a glitch. Its older records do not expire by
// that, not even with --accept-clock, and later ones expire in time.
func TestOlderRecordOfAGlitch(t *testing.T) {
	for _, boots := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			m.booted = m.booted.Add(-day)
			f, err := m.disk.Create(path.Join("data", FileName))
			if err != nil {
				t.Fatal(err)
			}
			before, glitch := time.Now().UnixMilli(), time.Now().Add(year).UnixMilli()
			if _, err := f.WriteAt(olderRecord(record{
				number: 1, vouched: glitch, ceiling: glitch, boot: "boot-1", since: day,
			}), 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if boots {
				m.reboot()
			}
			m.accept = true
			c := m.open()
			pass(c, 2*time.Hour)
			stamp := c.Read()
			pass(c, 2*time.Hour)
			if got := c.Moment().Horizon((6 * time.Hour).Milliseconds()); got > before {
				t.Errorf("a record of five hours ago is %d ms behind the horizon of six", got-before)
			}
			if got := c.Moment().Horizon((90 * time.Minute).Milliseconds()); got < stamp {
				t.Errorf("a stamp of two hours ago is %d ms ahead of the horizon of 1.5", stamp-got)
			}
		})
	}
}

// olderRecord returns a record as version 1 of the server wrote it: 104 bytes.
func olderRecord(r record) []byte {
	p := make([]byte, recordHead)
	copy(p[4:recordRest], r.encode()[4:recordRest])
	binary.LittleEndian.PutUint32(p, crc32.Checksum(p[4:], castagnoli))
	return p
}
