package shardlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A serial leads back to its index, and one that was lost to the first record after it.
func TestSkips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s skips
		at, life := uint64(1), uint64(0)
		type lost struct{ serial, next uint64 }
		var gone []lost
		for range rapid.IntRange(0, 5).Draw(t, "skips") {
			at += rapid.Uint64Max(9).Draw(t, "records")
			for n := range rapid.Uint64Max(5).Draw(t, "lost") {
				gone = append(gone, lost{s.serial(at + n), at})
			}
			life += 1 + rapid.Uint64Max(3).Draw(t, "lives")
			s = s.with(skip{at, life << lifeBits})
			if again := s.with(skip{at, life << lifeBits}); !slices.Equal(again, s) {
				t.Fatalf("the same skip again makes %v of %v", again, s)
			}
		}
		if s.broken(at) {
			t.Fatalf("%v is broken", s)
		}
		before := uint64(0)
		for index := uint64(1); index < at+9; index++ {
			serial := s.serial(index)
			if back, exact := s.index(serial); back != index || !exact || serial <= before {
				t.Fatalf("%v: record %d has serial %d, after %d, and that leads to %d, %v", s, index,
					serial, before, back, exact)
			}
			before = serial
		}
		for _, l := range gone {
			if next, exact := s.index(l.serial); next != l.next || exact {
				t.Fatalf("%v: the lost serial %d leads to %d, %v, want %d", s, l.serial, next, exact,
					l.next)
			}
		}
	})
}

// TestCrashAtIntervals loses power at logs that sync seldom, also while they start, checkpoint
// and make shards. A serial that was ever acknowledged or visible belongs to one record for ever,
// and a reader that continues after it gets every record that is acknowledged later.
func TestCrashAtIntervals(t *testing.T) {
	lost := 0
	for n := range 10 * soak() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Logf("seed %d", seed)
			r := &intervalRun{
				rng: rand.New(rand.NewPCG(seed, 3)), disk: vfs.NewCrashable(),
				known: map[ID]map[uint64]string{},
			}
			for range 12 {
				lost += r.life(t)
			}
		})
	}
	if lost < 100 {
		t.Errorf("only %d records were lost: the test has met too little", lost)
	}
}

// intervalRun is a series of lives of one data directory.
type intervalRun struct {
	rng   *rand.Rand
	disk  *vfs.Mem
	known map[ID]map[uint64]string // the key of the record with a serial
	last  ID
	keys  int
}

func (r *intervalRun) life(t *testing.T) (lost int) {
	c := setup{fileSize: []int64{16 << 10, 64 << 10}[r.rng.IntN(2)], delay: 1}
	if r.rng.IntN(3) > 0 {
		c.interval = time.Hour
	}
	var crashed *vfs.Mem
	at, ops, draw := r.rng.IntN(120), 0, rand.New(rand.NewPCG(r.rng.Uint64(), 1))
	if r.rng.IntN(2) == 0 {
		at = -1 // at the end
	}
	hook := make(chan struct{}, 1)
	c.fs = vfs.Inject(r.disk, func(op vfs.Op) error {
		hook <- struct{}{}
		defer func() { <-hook }()
		if op.Kind.Changes() && crashed == nil {
			if ops++; ops == at {
				crashed = r.disk.Crash(draw)
			}
		}
		if crashed != nil && op.Kind.Changes() {
			return vfs.ErrInjected // acknowledged records are on the disk that remains
		}
		return nil
	})
	e, err := c.open(t.Context())
	if err == nil {
		lost = r.check(t, e)
		r.work(t, e)
	}
	clean := r.rng.IntN(4) == 0
	hook <- struct{}{}
	if crashed == nil && !clean {
		crashed = r.disk.Crash(draw)
	}
	<-hook
	if e != nil {
		e.shut(t)
	}
	if crashed != nil {
		r.disk = crashed
	}
	return lost
}

// check compares the surviving records with the known ones, and reads on after each known serial.
func (r *intervalRun) check(t *testing.T, e *engine) (lost int) {
	for id, known := range r.known {
		sh := e.store.Shard(id)
		if sh == nil {
			continue // its creation is lost
		}
		got, err := readAll(t.Context(), sh)
		if err != nil {
			t.Errorf("shard %d: %v", id, err)
			return lost
		}
		there := map[uint64]bool{}
		for _, record := range got {
			there[record.Serial] = true
			if key, ok := known[record.Serial]; ok && key != record.PartitionKey {
				t.Errorf("shard %d: serial %d is of %s and was of %s", id, record.Serial,
					record.PartitionKey, key)
			}
			known[record.Serial] = record.PartitionKey // perhaps not acknowledged, but visible
		}
		_, next := sh.Bounds()
		for serial := range known {
			index, exact := sh.IndexOf(serial)
			switch {
			case there[serial] && (!exact || index >= next || got[index-1].Serial != serial):
				t.Errorf("shard %d: serial %d, which is there, leads to %d, %v", id, serial, index,
					exact)
			case !there[serial]:
				lost++
				if exact || index > next || index < next && got[index-1].Serial < serial ||
					index > 1 && got[index-2].Serial > serial {
					t.Errorf("shard %d: serial %d, which is lost, leads to %d of %d, %v", id, serial,
						index, next, exact)
				}
			}
		}
	}
	return lost
}

// work makes shards, appends, seals and checkpoints, until something fails.
func (r *intervalRun) work(t *testing.T, e *engine) {
	ctx := context.WithoutCancel(t.Context())
	for range r.rng.IntN(40) {
		var err error
		id := ID(1 + r.rng.IntN(int(r.last)+1))
		switch what := r.rng.IntN(20); {
		case e.store.Shard(id) == nil || what == 0:
			id = r.last + 1
			for free := ID(1); free < id; free++ { // as a catalogue that has lost its last frames
				if e.store.Shard(free) == nil {
					id = free
				}
			}
			r.last = max(r.last, id)
			err = e.do(ctx, opCreate, id)
		case what == 1:
			err = e.log.Checkpoint(ctx)
		default:
			err = r.append(ctx, t, e, id)
		}
		if err != nil {
			return
		}
	}
}

func (r *intervalRun) append(ctx context.Context, t *testing.T, e *engine, id ID) error {
	if r.known[id] == nil {
		r.known[id] = map[uint64]string{}
	}
	var list []Entry
	for range 1 + r.rng.IntN(5) {
		r.keys++
		list = append(list, Entry{PartitionKey: fmt.Sprint(r.keys), Data: make([]byte, r.rng.IntN(500))})
	}
	numbers, err := e.append(ctx, id, list...)
	if err != nil {
		return err
	}
	newest := uint64(0)
	for serial := range r.known[id] {
		newest = max(newest, serial)
	}
	for i, n := range numbers {
		if n.Serial <= newest {
			t.Errorf("shard %d: a new record has serial %d, and %d was given before", id, n.Serial, newest)
		}
		newest = n.Serial
		r.known[id][n.Serial] = list[i].PartitionKey
	}
	return nil
}

// Serials are indexes until a life that synced at intervals has not ended in order.
func TestSkipsAreRare(t *testing.T) {
	disk := vfs.NewCrashable()
	for n, life := range []struct {
		interval time.Duration
		clean    bool
		skips    int // found at the start
	}{
		{0, false, 0},
		{0, true, 0},
		{time.Hour, true, 0},
		{time.Hour, false, 0},
		{0, true, 1},
		{0, false, 1},
		{time.Hour, false, 1},
		{time.Hour, true, 2},
		{0, false, 2},
	} {
		e := setup{fs: disk, interval: life.interval}.mustOpen(t)
		if n == 0 {
			if err := e.do(t.Context(), opCreate, 1); err != nil {
				t.Fatal(err)
			}
		}
		sh := e.store.Shard(1)
		if got := len(sh.skipping()); got != life.skips {
			t.Errorf("life %d begins with %d skips, want %d", n, got, life.skips)
		}
		if _, err := e.append(t.Context(), 1, entry(1, n, 10)); err != nil {
			t.Fatal(err)
		}
		if err := e.log.Checkpoint(t.Context()); err != nil { // keeps the record, not the order
			t.Fatal(err)
		}
		if life.clean {
			e.mustClose(t)
			continue
		}
		left := disk.Crash(rand.New(rand.NewPCG(1, uint64(n))))
		e.shut(t)
		disk = left
	}
}

func TestSkipFrames(t *testing.T) {
	f := skipFrame{by: 7 << lifeBits, shards: []ID{1, 9}, first: []uint64{1, 55}}
	got, err := decodeSkip(f.encode())
	if err != nil || got.by != f.by || !slices.Equal(got.shards, f.shards) ||
		!slices.Equal(got.first, f.first) {
		t.Errorf("%+v is read as %+v, %v", f, got, err)
	}
	good := f.encode()
	for n := range good {
		if _, err := decodeSkip(good[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	for name, bad := range map[string]skipFrame{
		"no amount":          {shards: []ID{1}, first: []uint64{1}},
		"from nothing":       {by: 1, shards: []ID{1}, first: []uint64{0}},
		"of no shard":        {by: 1, shards: []ID{2}, first: []uint64{1}},
		"from beyond 's end": {by: 1, shards: []ID{1}, first: []uint64{2}},
	} {
		e := setup{fs: vfs.NewMem()}.mustOpen(t)
		if err := e.do(t.Context(), opCreate, 1); err != nil {
			t.Fatal(err)
		}
		if err := e.store.Replay(wal.LSN(5), bad.encode()); !errors.Is(err, ErrFormat) {
			t.Errorf("a skip %s: %v", name, err)
		}
		e.mustClose(t)
	}
}
