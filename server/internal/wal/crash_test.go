package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// soak is how many times more random cases to run: RUNNEL_SOAK, 1 by default.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// end is the way in which a life of the log ends.
type end int

const (
	powerLoss  end = iota // unsynced data is kept, lost and torn
	kill                  // the process stops between two calls: all data stays, synced or not
	failure               // one call fails, and the others do not
	cleanClose            // Close, then the power fails
	ends
)

func (e end) String() string {
	return [...]string{"power loss", "kill", "failure", "clean close"}[e]
}

var errKilled = errors.New("killed")

// machine is a computer with a disk, on which a log lives several lives in turn. It knows which
// frames must be there after each life.
type machine struct {
	disk *vfs.Mem
	cfg  Config
	rng  *rand.Rand
	must []uint64 // every frame that was acknowledged or seen, in order
	next uint64   // frame

	sizes int // of this life's payloads; -1 for all kinds

	mu     sync.Mutex // held by the hook that ends a life, and by acknowledging goroutines
	noted  []uint64   // becomes must, unless the mode allows its loss
	soft   []uint64   // must be there unless the power fails before the next start is done
	left   int        // changes of the disk until the end
	over   bool
	after  *vfs.Mem // the disk after a power loss
	living *bundle
	acked  int // frames of this life's journal
}

// hook ends the life at the chosen call.
func (m *machine) hook(how end) func(op vfs.Op) error {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 2)) // of its own: it runs beside the others
	return func(op vfs.Op) error {
		if !op.Kind.Changes() {
			return nil
		}
		if op.Kind == vfs.OpSync { // lets the others fill a larger batch
			for range 20 {
				runtime.Gosched()
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.left--; m.left == 0 {
			m.over = true
			m.note()
			if how == powerLoss {
				m.after = m.disk.Crash(rng)
			}
			if how == failure {
				return fmt.Errorf("%s: %w", op, vfs.ErrInjected)
			}
		}
		if m.over && how == kill {
			return errKilled
		}
		return nil
	}
}

// note records the frames that must outlive this instant: the acknowledged and the visible ones.
func (m *machine) note() {
	if m.living == nil {
		return
	}
	j := m.living.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := max(m.acked, j.visible); n > len(m.noted) {
		m.noted = slices.Clone(j.entries[:n])
	}
}

// live runs a life: start, appenders, checkpoints, and the end, at the change of the disk
// number left.
func (m *machine) live(ctx context.Context, how end, left int) error {
	m.left, m.over, m.after, m.living, m.acked = left, false, nil, nil, len(m.must)
	m.noted = m.must
	m.cfg.SyncInterval = 0
	if m.rng.IntN(4) == 0 {
		m.cfg.SyncInterval = time.Duration(1+m.rng.IntN(1000)) * time.Microsecond
	}
	m.cfg.MarkDelay = time.Duration(1+left%30*10) * time.Microsecond
	m.sizes = 8 + m.rng.IntN(1500)
	if m.rng.IntN(2) == 0 {
		m.sizes = -1
	}
	if how == cleanClose {
		m.left = -1
	}
	cfg := m.cfg
	cfg.FS = vfs.Inject(m.disk, m.hook(how))
	b, err := launch(ctx, cfg)
	switch {
	case err == nil:
		err = m.work(ctx, b)
	case m.over:
		err = nil // it ended while it started
	}
	if err != nil {
		return err
	}
	loose := m.cfg.SyncInterval > 0 && how != cleanClose
	if !loose && len(m.noted) > len(m.must) {
		m.must = m.noted
	}
	switch {
	case m.after != nil:
		m.disk, m.soft = m.after, nil
	case how == cleanClose || m.rng.IntN(2) == 0:
		// The power fails later, before any client has returned.
		m.disk, m.soft = m.disk.Crash(m.rng), nil
	case len(m.noted) > len(m.soft):
		m.soft = m.noted
	}
	return nil
}

// work appends from several goroutines until the life ends or they are done, and closes.
func (m *machine) work(ctx context.Context, b *bundle) error {
	if err := m.check(b.journal.entries); err != nil {
		return errors.Join(err, b.Close(ctx))
	}
	m.mu.Lock()
	m.living = b
	m.mu.Unlock()
	first := m.next
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for w := range uint64(3) {
		seed := m.rng.Uint64()
		group.Go(func() { errs <- m.appender(ctx, b, first+w*1000, seed) })
	}
	checks := m.rng.IntN(4)
	group.Go(func() {
		for range checks {
			if err := b.Checkpoint(ctx); err != nil && !m.ended() {
				errs <- err
			}
		}
	})
	group.Wait()
	m.next += 10_000
	err := b.Close(ctx)
	if m.ended() {
		err = nil
	}
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.after == nil { // acknowledgements after a failure count as well
		m.note()
	}
	return err
}

func (m *machine) ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

func (m *machine) appender(ctx context.Context, b *bundle, first, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range uint64(rng.IntN(40)) {
		size := m.sizes // all the same, so that old frames lie where new ones could
		switch {
		case size < 0 && rng.IntN(20) == 0:
			size = rng.IntN(40_000) + 8 // larger than a log file
		case size < 0:
			size = 8 + rng.IntN(1500)
		}
		lsn, err := b.put(ctx, first+i, size)
		if err == nil && rng.IntN(3) > 0 {
			err = b.Wait(ctx, lsn)
			m.acknowledge(b, lsn, err)
		}
		if err != nil {
			if m.ended() {
				return nil
			}
			return err
		}
	}
	return nil
}

// acknowledge counts the frames that a nil from Wait promises: all up to lsn.
func (m *machine) acknowledge(b *bundle, lsn LSN, err error) {
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b.journal.mu.Lock()
	n, _ := slices.BinarySearch(b.journal.lsns, lsn)
	b.journal.mu.Unlock()
	m.acked = max(m.acked, n+1)
}

// check compares the frames that a start has found with those that must be there, and with the
// last life's order.
func (m *machine) check(found []uint64) error {
	if len(found) < len(m.must) {
		return fmt.Errorf("%d frames were acknowledged or seen, %d are left",
			len(m.must), len(found))
	}
	if !slices.Equal(found[:len(m.must)], m.must) {
		return fmt.Errorf("frames changed: %v, must be %v", found, m.must)
	}
	if m.living != nil {
		before := m.living.journal.entries
		if len(found) > len(before) || !slices.Equal(found, before[:len(found)]) {
			return fmt.Errorf("found %v, appended in the life before: %v", found, before)
		}
	}
	if !m.ended() {
		if len(found) < len(m.soft) {
			return fmt.Errorf("%d frames were written, %d are left", len(m.soft), len(found))
		}
		m.must = slices.Clone(found) // every later start must find them too
	}
	m.soft = nil
	return nil
}

func TestCrashes(t *testing.T) {
	base := uint64(time.Now().UnixNano())
	if s := os.Getenv("RUNNEL_SEED"); s != "" {
		base, _ = strconv.ParseUint(s, 10, 64)
	}
	crashes := 0
	for i := range uint64(150 * soak()) {
		seed := base + i
		lives, err := crashStory(t.Context(), seed)
		if err != nil {
			t.Fatalf("RUNNEL_SEED=%d: %v", seed, err)
		}
		crashes += lives
	}
	t.Logf("soak: %d seeds, %d crashes", 150*soak(), crashes)
}

// crashStory is some lives of one machine. It returns how many.
func crashStory(ctx context.Context, seed uint64) (lives int, err error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := vfs.NewCrashable()
	m := &machine{disk: disk, cfg: config(disk), rng: rng}
	var story []string
	for range 2 + rng.IntN(6) {
		how, left := end(rng.IntN(int(ends))), 1+rng.IntN(120)
		if rng.IntN(3) == 0 {
			left = 1 + rng.IntN(15) // in the start
		}
		story = append(story, fmt.Sprintf("%v at %d", how, left))
		if err := m.live(ctx, how, left); err != nil {
			return 0, fmt.Errorf("%s: %w", strings.Join(story, ", "), err)
		}
	}
	b, err := launch(ctx, m.cfg1())
	if err != nil {
		return 0, fmt.Errorf("%s, then a start: %w", strings.Join(story, ", "), err)
	}
	if err := m.check(b.journal.entries); err != nil {
		err = fmt.Errorf("%s, then a start: %w", strings.Join(story, ", "), err)
		return 0, errors.Join(err, b.Close(ctx))
	}
	return len(story), b.Close(ctx)
}

func (m *machine) cfg1() Config {
	cfg := m.cfg
	cfg.FS = m.disk
	return cfg
}

// The power fails at every single change of the disk that a short life makes, from the first
// start on, and again in each recovery.
func TestCrashAtEveryStep(t *testing.T) {
	crashes := 0
	for left := 1; ; left++ {
		reached := false
		for seed := range uint64(soak()) {
			disk := vfs.NewCrashable()
			m := &machine{disk: disk, cfg: config(disk), rng: rand.New(rand.NewPCG(seed, uint64(left)))}
			if err := m.live(t.Context(), powerLoss, left); err != nil {
				t.Fatalf("step %d, seed %d: %v", left, seed, err)
			}
			crashes++
			reached = reached || m.over
			for again := 1 + left%3; again < 20; again += 5 {
				if err := m.live(t.Context(), powerLoss, again); err != nil {
					t.Fatalf("step %d, seed %d, then %d: %v", left, seed, again, err)
				}
				crashes++
			}
		}
		if !reached {
			if left < 50 {
				t.Errorf("a life made only %d changes", left)
			}
			t.Logf("soak: %d seeds, %d crashes", soak(), crashes)
			return
		}
	}
}
