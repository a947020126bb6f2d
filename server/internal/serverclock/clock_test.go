package serverclock

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// machine is a computer with a system's clock that is stepped, and boots. It runs in virtual time.
type machine struct {
	t      *testing.T
	disk   *vfs.Mem
	offset atomic.Int64 // of the system's clock, ns
	boot   int
	booted time.Time
	accept bool // of the next life
	log    bytes.Buffer
	hook   atomic.Pointer[func(vfs.Op) error]
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, disk: vfs.NewCrashable()}
	m.inject(func(vfs.Op) error { return nil })
	if err := m.disk.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	m.reboot()
	return m
}

func (m *machine) reboot() { m.boot, m.booted = m.boot+1, time.Now() }

func (m *machine) wall() time.Time { return time.Now().Add(time.Duration(m.offset.Load())) }

// step steps the system's clock.
func (m *machine) step(by time.Duration) { m.offset.Add(int64(by)) }

func (m *machine) inject(hook func(vfs.Op) error) { m.hook.Store(&hook) }

// open begins a server's life. No stream of it has a record yet.
func (m *machine) open() *Clock {
	m.t.Helper()
	c, err := Open(Config{
		Wall: m.wall, FS: vfs.Inject(m.disk, func(op vfs.Op) error { return (*m.hook.Load())(op) }),
		Dir: "data", Accept: m.accept, Logger: slog.New(slog.NewTextHandler(&m.log, nil)),
		Boot: func() (string, time.Duration) {
			return fmt.Sprint("boot-", m.boot), time.Since(m.booted)
		},
	})
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = c.Close() }) // after a failure
	return c
}

// die ends a life without its clean end: the next one has another disk, which holds nothing of it.
func (m *machine) die(c *Clock, disk *vfs.Mem) {
	m.t.Helper()
	if err := c.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.disk = disk
}

func (m *machine) close(c *Clock) {
	m.t.Helper()
	if err := c.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// settle lets the clock make the record that a step needs.
func settle(c *Clock) time.Time {
	c.Read()
	synctest.Wait()
	return c.Now()
}

// soak multiplies the sizes of the random tests: RUNNEL_SOAK, default 1.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// The clock goes with the system's, but never back: not over its steps, and not over ends of any
// kind, whatever of the unsynced a power cut leaves.
func TestNeverBack(t *testing.T) {
	for seed := range uint64(60 * soak()) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			m := newMachine(t)
			c := m.open()
			var last int64
			read := func(what string) {
				t.Helper()
				now := c.Read()
				if now < last {
					t.Fatalf("seed %d: after %s the clock is %v back", seed, what,
						time.Duration(last-now)*time.Millisecond)
				}
				last = now
			}
			for range 60 {
				what := ""
				switch rng.IntN(8) {
				case 0:
					what = "a step of the system's clock"
					m.step(randomStep(rng))
					m.accept = rng.IntN(2) == 0
				case 1:
					what = "a power cut"
					m.die(c, m.disk.Crash(rng))
					m.step(-time.Duration(rng.Int64N(int64(time.Minute))))
					m.reboot()
					c = m.open()
				case 2:
					what = "a kill"
					m.die(c, m.disk.Crash(rng))
					m.step(-time.Duration(rng.Int64N(int64(time.Minute))))
					c = m.open()
				case 3:
					what = "a clean end"
					m.close(c)
					read("Close")
					m.step(-time.Duration(rng.Int64N(int64(time.Minute))))
					if rng.IntN(2) == 0 {
						m.reboot()
					}
					c = m.open()
				default:
					what = "some time"
					time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Minute))))
				}
				read(what)
				if rng.IntN(2) == 0 {
					synctest.Wait()
					read(what)
				}
			}
			m.close(c)
		})
	}
	t.Logf("soak: %d seeds", 60*soak())
}

// Without steps the clock is the system's, also after a kill: no freeze is to be seen.
func TestGoesWithTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		c := m.open()
		off := func(what string, most time.Duration) {
			t.Helper()
			if by := settle(c).Sub(m.wall()).Abs(); by > most {
				t.Errorf("%s: the clock is %v off", what, by)
			}
		}
		for range 500 {
			time.Sleep(777 * time.Millisecond)
			if by := c.Now().Sub(m.wall()).Abs(); by > time.Millisecond {
				t.Fatalf("the clock is %v off", by)
			}
		}
		m.step(15 * time.Minute)
		off("a step forward", time.Millisecond)
		m.step(time.Millisecond) // within the slack: no record is needed
		if by := c.Now().Sub(m.wall()).Abs(); by > time.Millisecond {
			t.Errorf("the clock is %v off after a small step", by)
		}
		time.Sleep(time.Minute)
		m.die(c, m.disk.Crash(rand.New(rand.NewPCG(1, 1))))
		c = m.open()
		off("a kill", slack)
		time.Sleep(slack)
		m.close(c)
		c = m.open()
		off("a clean end", time.Millisecond)
		m.die(c, m.disk.Crash(rand.New(rand.NewPCG(1, 2))))
		m.reboot()
		c = m.open()
		off("a power cut", ceilingAhead)
		time.Sleep(ceilingAhead)
		off("some time after a power cut", time.Millisecond)
		m.close(c)
		if text := m.log.String(); strings.Count(text, "level=WARN") != 2 ||
			!strings.Contains(text, "step=15m0s") || !strings.Contains(text, "is behind the times") {
			t.Errorf("the log says %s", text)
		}
	})
}

// While the system's clock is behind, the server's goes on at half speed, also over a restart,
// until the system's has caught up; the log says by how much it is behind.
func TestGoesOnAtHalfSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		c := m.open()
		start := c.Now()
		m.step(-time.Hour)
		for _, restart := range []bool{false, true} {
			if restart {
				m.close(c)
				c = m.open()
			}
			before := c.Now()
			for range 20 {
				time.Sleep(time.Minute)
				want := 30 * time.Second
				if now := c.Now(); (now.Sub(before) - want).Abs() > 10*time.Millisecond {
					t.Fatalf("restarted %v: the clock moved by %v in a minute", restart, now.Sub(before))
				}
				before = c.Now()
			}
		}
		time.Sleep(82 * time.Minute)
		if now := settle(c); now.Sub(m.wall()).Abs() > time.Millisecond {
			t.Errorf("the clock is %v off the system's, which has caught up", now.Sub(m.wall()))
		}
		if went := c.Now().Sub(start); went.Round(time.Minute) != 62*time.Minute {
			t.Errorf("it went on by %v", went)
		}
		time.Sleep(time.Minute)
		if now := c.Now(); now.Sub(m.wall()).Abs() > time.Millisecond {
			t.Errorf("the clock is %v off, a minute later", now.Sub(m.wall()))
		}
		m.close(c)
		if text := m.log.String(); !strings.Contains(text, "step=-1h0m0s behind=") ||
			!strings.Contains(text, "is behind the times in this data directory") {
			t.Errorf("the log says %s", text)
		}
	})
}

// A disk that takes nothing stops the clock at its ceiling and no later; a full one takes records,
// for they are written in place.
func TestDiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		c := m.open()
		m.disk.SetLimit(m.disk.Used()) // full
		time.Sleep(time.Hour)
		if by := c.Now().Sub(m.wall()).Abs(); by > time.Millisecond {
			t.Errorf("on a full disk the clock is %v off", by)
		}
		m.inject(func(op vfs.Op) error {
			if op.Kind == vfs.OpSync {
				return vfs.ErrInjected
			}
			return nil
		})
		time.Sleep(time.Hour)
		stopped := c.Now()
		if behind := m.wall().Sub(stopped); behind < time.Hour-ceilingAhead ||
			behind > time.Hour-ceilingAhead+refreshEvery {
			t.Errorf("the clock is %v behind after an hour", behind)
		}
		if ahead, differs, _ := c.Difference(); !differs || ahead > -time.Hour/2 {
			t.Errorf("the clock that has stopped is %v ahead, differs: %v", ahead, differs)
		}
		var after *vfs.Mem
		for seed := range uint64(50) { // a record that is torn leaves the one before
			after = m.disk.Crash(rand.New(rand.NewPCG(seed, 1)))
			if ceiling, ok, err := Inspect(after, "data"); !ok || err != nil ||
				ceiling.Before(stopped) {
				t.Fatalf("seed %d: a power cut leaves %v, %v, %v", seed, ceiling, ok, err)
			}
		}
		m.inject(func(vfs.Op) error { return nil })
		time.Sleep(2 * retryAfter)
		if by := settle(c).Sub(m.wall()).Abs(); by > time.Millisecond {
			t.Errorf("the clock is %v off when the disk works again", by)
		}
		m.die(c, after)
		m.reboot()
		m.step(-3 * time.Hour)
		c = m.open()
		if now := c.Now(); now.Before(stopped) {
			t.Errorf("after a power cut the clock is %v back", stopped.Sub(now))
		}
		m.close(c)
	})
}

// A file that is not there, or of which nothing verifies, is that of an older version: the caller
// raises the clock to the time of its newest record. One damaged slot leaves the other.
func TestDamagedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		c := m.open()
		m.close(c)
		first := c.Now()
		spoil := func(slots ...int64) {
			t.Helper()
			f, err := m.disk.Open(path.Join("data", FileName))
			if err != nil {
				t.Fatal(err)
			}
			for _, slot := range slots {
				if _, err := f.WriteAt([]byte{0xff}, slot*slotEvery+20); err != nil {
					t.Fatal(err)
				}
			}
		}
		inspect := func(want bool) {
			t.Helper()
			if _, ok, err := Inspect(m.disk, "data"); ok != want || err != nil {
				t.Errorf("Inspect: %v, %v", ok, err)
			}
		}
		inspect(true)
		m.step(-time.Hour)
		spoil(1) // the older one: record 1; the clean end is record 2
		c = m.open()
		if !c.Now().Equal(first) {
			t.Errorf("with one slot the clock is %v off", c.Now().Sub(first))
		}
		m.close(c)
		spoil(0, 1)
		inspect(false)
		c, err := Open(Config{
			Wall: m.wall, FS: m.disk, Dir: "data", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.NotBefore(first.UnixMilli() + 7) // the newest record of the streams
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if got := c.Read() - first.UnixMilli(); got != 7 {
			t.Errorf("without the file the clock begins at %d ms, want 7", got)
		}
		m.close(c)
		inspect(true)
		if err := m.disk.Remove(path.Join("data", FileName)); err != nil {
			t.Fatal(err)
		}
		inspect(false)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add((&record{number: 1, vouched: 2, ceiling: 3, boot: "b", since: 4}).encode())
	f.Add(make([]byte, slotEvery))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, ok := decode(p)
		if ok && !bytes.Equal(r.encode()[6:40], p[6:40]) {
			t.Errorf("%x is read as %+v", p, r)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	disk := vfs.NewMem()
	if err := disk.MkdirAll("data"); err != nil {
		b.Fatal(err)
	}
	c, err := Open(Config{FS: disk, Dir: "data"})
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Read()
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}
