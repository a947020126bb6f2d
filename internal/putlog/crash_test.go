package putlog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/vfs"
)

// model is the expected state after a crash.
type model struct {
	units map[uint64]*modelUnit
	next  uint64
}

type modelUnit struct {
	putlog.FrozenUnit
	sent bool        // Frozen has returned
	fate putlog.Fate // given to Settled; a crash may have lost it
	sure bool        // the fate was durable
}

// Random loads are cut by power failures between any two operations. After each every unit that
// may have been sent and is not settled is there, byte for byte; every record is in a unit, or is
// put; and none is put that is in a unit that counts.
func TestCrashes(t *testing.T) {
	soak, _ := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	for seed := range uint64(300 * max(1, soak)) {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { crashes(t, seed) }) {
			return
		}
	}
	t.Logf("soak: %d seeds, %d crashes", 300*max(1, soak), 5*300*max(1, soak))
}

func crashes(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	disk := newFS(t)
	m := &model{units: map[uint64]*modelUnit{}, next: 1}
	for range 5 {
		// The power fails before an operation of the disk.
		left := random.IntN(60)
		var after *vfs.Mem
		fs := vfs.Inject(disk, func(op vfs.Op) error {
			if op.Kind == vfs.OpLock {
				return nil
			}
			if left--; left == 0 {
				after = disk.Crash(random)
			}
			if left <= 0 {
				return vfs.ErrInjected
			}
			return nil
		})
		m.run(t, fs, random, func() bool { return left > 0 })
		if after == nil {
			after = disk.Crash(random)
		}
		disk = after
		m.check(t, disk)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// run does random things until the disk fails.
func (m *model) run(t *testing.T, fs vfs.FS, random *rand.Rand, alive func() bool) {
	j, err := putlog.Open(name, load(), putlog.Options{FS: fs, CompactAt: 2000})
	if err != nil {
		if alive() {
			t.Fatal(err)
		}
		return
	}
	var waiting []uint64
	for mark := uint64(0); alive(); {
		switch random.IntN(4) {
		case 0:
			for range random.IntN(8) {
				_, skip, err := j.Read(line(mark))
				if err != nil {
					t.Fatal(err)
				}
				if !skip {
					waiting = append(waiting, mark)
				}
				mark++
			}
		case 1, 2:
			waiting = m.freeze(t, j, random, waiting)
		default:
			waiting = m.settle(j, random, waiting)
		}
	}
	_ = j.Close()
}

// freeze packs some of the waiting records into units.
func (m *model) freeze(
	t *testing.T, j *putlog.Journal, random *rand.Rand, waiting []uint64,
) []uint64 {
	random.Shuffle(len(waiting), func(a, b int) {
		waiting[a], waiting[b] = waiting[b], waiting[a]
	})
	var units []putlog.FrozenUnit
	for range 1 + random.IntN(3) {
		n := min(len(waiting), 1+random.IntN(3))
		if n == 0 {
			break
		}
		u := unit(m.next, append([]uint64(nil), waiting[:n]...)...)
		waiting = waiting[n:]
		m.units[m.next] = &modelUnit{FrozenUnit: u}
		m.next++
		units = append(units, u)
	}
	if err := j.Frozen(t.Context(), units); err == nil {
		for _, u := range units {
			m.units[u.Unit.Number].sent = true
		}
		for _, u := range m.units {
			u.sure = u.fate != 0
		}
	}
	return waiting
}

// settle draws the fate of a unit; the records of one with the fate Again wait anew.
func (m *model) settle(j *putlog.Journal, random *rand.Rand, waiting []uint64) []uint64 {
	for _, u := range m.units {
		if !u.sent || u.fate != 0 || random.IntN(3) > 0 {
			continue
		}
		u.fate = putlog.Fate(1 + random.IntN(3))
		if u.fate == putlog.Again {
			waiting = append(waiting, u.Marks...)
		}
		j.Settled([]putlog.SettledUnit{settled(u.Unit.Number, u.fate)})
	}
	return waiting
}

// check opens the journal as the next run does, compares it with the model, and continues from it.
func (m *model) check(t *testing.T, fs vfs.FS) {
	t.Helper()
	j, err := putlog.Open(name, load(), putlog.Options{FS: fs, CompactAt: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	inUnit := map[uint64]int{}
	resumed := map[uint64]bool{}
	for _, u := range j.Resume() {
		was := m.units[u.Unit.Number]
		if was == nil || describe([]putlog.FrozenUnit{u}) != describe([]putlog.FrozenUnit{was.FrozenUnit}) {
			t.Fatalf("resumed a unit that never was, or was another: %+v", u)
		}
		if was.sure {
			t.Errorf("unit %d comes again, and its fate was durable", u.Unit.Number)
		}
		resumed[u.Unit.Number] = true
		was.sent, was.fate = true, 0
	}
	for number, u := range m.units {
		switch {
		case resumed[number]:
		case u.sent && u.fate == 0:
			t.Errorf("unit %d may have been sent, and is lost", number)
		case !u.sent, u.fate == putlog.Again:
			delete(m.units, number)
			continue
		}
		for _, mark := range u.Marks {
			inUnit[mark]++
		}
	}
	for mark := range uint64(200) {
		_, skip, err := j.Read(line(mark))
		if err != nil {
			t.Fatal(err)
		}
		if want := inUnit[mark]; want > 1 || skip != (want == 1) {
			t.Errorf("record %d is skipped: %v, and it is in %d units", mark, skip, want)
		}
	}
}

// From every prefix of a journal, Open restores the frames that are whole.
func TestPrefixes(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	first := len(read(t, fs))
	readTo(t, j, 0, 9)
	var ends []int
	for n := range uint64(8) {
		freeze(t, j, unit(n+1, n))
		ends = append(ends, len(read(t, fs)))
	}
	_ = j.Close()
	content := read(t, fs)
	for size := range content {
		prefix := newFS(t)
		write(t, prefix, content[:size])
		j, err := putlog.Open(name, load(), putlog.Options{FS: prefix})
		if err != nil {
			if size >= first || !errors.Is(err, putlog.ErrNotJournal) {
				t.Fatalf("%d bytes of it: %v", size, err)
			}
			continue
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= size {
			whole++
		}
		// A unit's frame may be whole before those that follow it in its batch.
		if got := len(j.Resume()); got != whole && got != whole+1 {
			t.Errorf("%d bytes of it: %d units, want %d", size, got, whole)
		}
		_ = j.Close()
	}
}

// Open refuses a broken frame that was synced before; it is not a torn end.
func TestDamage(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 9)
	first := len(read(t, fs))
	freeze(t, j, unit(1, 0), unit(2, 1))
	second := len(read(t, fs))
	freeze(t, j, unit(3, 2))
	_ = j.Close()
	content := read(t, fs)
	for at := first; at < second; at++ {
		damaged := append([]byte(nil), content...)
		damaged[at] ^= 0x40
		disk := newFS(t)
		write(t, disk, damaged)
		if _, err := putlog.Open(name, load(), putlog.Options{FS: disk}); !errors.Is(err,
			putlog.ErrDamaged) {
			t.Fatalf("byte %d is broken: %v", at, err)
		}
	}
}

// Open returns a journal or an error for any bytes, and the same journal when opened twice.
func FuzzOpen(f *testing.F) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("folder"); err != nil {
		f.Fatal(err)
	}
	j, err := putlog.Open(name, load(), putlog.Options{FS: fs})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(read(f, fs))
	_, _, _ = j.Read(line(0))
	_ = j.Frozen(f.Context(), []putlog.FrozenUnit{unit(1, 0), unit(2, 7, 3)})
	j.Settled([]putlog.SettledUnit{settled(1, putlog.Again)})
	_ = j.Close()
	f.Add(read(f, fs))
	f.Fuzz(func(t *testing.T, content []byte) {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("folder"); err != nil {
			t.Fatal(err)
		}
		write(t, fs, content)
		j, err := putlog.Open(name, load(), putlog.Options{FS: fs})
		if err != nil {
			return
		}
		want, done := describe(j.Resume()), j.Done()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := putlog.Open(name, load(), putlog.Options{FS: fs})
		if err != nil {
			t.Fatalf("opened once, and then: %v", err)
		}
		defer again.Close()
		if got := describe(again.Resume()); got != want || again.Done() != done {
			t.Errorf("resumed %s and then %s", want, got)
		}
	})
}
