package shardlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Power is lost again and again, at a moment in the middle of appends, drains, segment rolls,
// checkpoints, trims, deletions and recoveries. Each time every acknowledged or visible record is
// there again, once, in order, with its number.
func TestCrash(t *testing.T) {
	const lives = 12
	for n := range 8 * soak() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Logf("seed %d", seed) // the moments also depend on the goroutines' schedule
			newCrashRun(seed).run(t, lives)
		})
	}
	t.Logf("soak: %d seeds, %d crashes", 8*soak(), 8*soak()*lives)
}

// crashRun is a series of lives of one data directory, with the records that must survive.
type crashRun struct {
	rng   *rand.Rand
	disk  *vfs.Mem
	clock clock

	mu     sync.Mutex
	engine *engine
	shards map[ID]*crashShard
	lastID ID
}

// crashShard holds the operations on a shard and their answers.
type crashShard struct {
	sequenced  []Record // by index; some of them perhaps not durable
	acked      uint64   // the index after the last record that was acknowledged
	trimAsked  int64    // the latest time that a trim was asked for
	created    bool     // answered
	sealAsked  bool
	deadAsked  bool
	deadBefore bool // answered
}

// least is the part of a shard that must survive.
type least struct {
	next, oldest uint64
	sealed       bool
	created      bool
	dead         bool
}

func newCrashRun(seed uint64) *crashRun {
	return &crashRun{
		rng:    rand.New(rand.NewPCG(seed, 1)),
		disk:   vfs.NewCrashable(),
		shards: map[ID]*crashShard{},
	}
}

func (c *crashRun) run(t *testing.T, lives int) {
	setup := setup{
		now:         c.clock.now,
		segmentSize: []int64{4 << 10, 16 << 10}[c.rng.IntN(2)],
		fileSize:    []int64{16 << 10, 64 << 10}[c.rng.IntN(2)],
		openFiles:   []int{4, 100}[c.rng.IntN(2)],
		delay:       1,
	}
	for range lives {
		var trap trap
		setup.fs = trap.set(c, 1+c.rng.IntN(250))
		c.use(setup.mustOpen(t))
		c.live(t)
		c.engine.shut(t)
		if trap.disk == nil { // the trap was not reached: lose power now
			trap.spring(c)
		}
		c.disk = trap.disk
		if c.rng.IntN(3) == 0 {
			c.crashRecovery(t, setup)
		}
		setup.fs = c.disk
		before := inspect(t, c.disk)
		c.use(setup.mustOpen(t))
		if err := before.compare(c.engine.store); err != nil {
			t.Errorf("inspected before the start: %v", err)
		}
		c.verify(t, trap.least)
		if t.Failed() {
			c.engine.shut(t)
			return
		}
		c.engine.mustClose(t)
	}
}

func (c *crashRun) use(e *engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine = e
}

// trap loses power before the nth operation that changes the disk. The run continues, but the
// test uses the disk as of that moment.
type trap struct {
	once  sync.Once
	seed  uint64
	disk  *vfs.Mem
	least map[ID]least
}

func (p *trap) set(c *crashRun, n int) vfs.FS {
	p.seed = c.rng.Uint64()
	var seen atomic.Int64
	return vfs.Inject(c.disk, func(op vfs.Op) error {
		if op.Kind.Changes() && seen.Add(1) == int64(n) {
			p.spring(c)
		}
		return nil
	})
}

func (p *trap) spring(c *crashRun) {
	p.once.Do(func() {
		p.least = c.visible()
		p.disk = c.disk.Crash(rand.New(rand.NewPCG(p.seed, 2)))
	})
}

// visible records the acknowledged and the visible records.
func (c *crashRun) visible() map[ID]least {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[ID]least{}
	for id, asked := range c.shards {
		now := least{next: asked.acked, created: asked.created, dead: asked.deadBefore}
		if c.engine != nil {
			if sh := c.engine.store.Shard(id); sh != nil {
				oldest, next := sh.Bounds()
				now.next, now.oldest, now.sealed = max(now.next, next), oldest, sh.Sealed()
			}
		}
		all[id] = now
	}
	return all
}

// crashRecovery loses power again while the log and the store start.
func (c *crashRun) crashRecovery(t *testing.T, setup setup) {
	c.use(nil)
	var trap trap
	setup.fs = trap.set(c, 1+c.rng.IntN(60))
	setup.mustOpen(t).mustClose(t)
	if trap.disk != nil {
		c.disk = trap.disk
	}
}

// live lets four goroutines do things.
func (c *crashRun) live(t *testing.T) {
	var group sync.WaitGroup
	for w := range 4 {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), uint64(w)))
		group.Go(func() {
			for n := range 60 {
				if err := c.step(t.Context(), rng, n); err != nil {
					t.Errorf("step %d: %v", n, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func (c *crashRun) step(ctx context.Context, rng *rand.Rand, n int) error {
	c.clock.ms.Add(rng.Int64N(5))
	id, asked := c.pick(rng)
	what := rng.IntN(100)
	switch {
	case asked == nil || what < 2:
		return c.create(ctx)
	case what < 4:
		return c.ask(ctx, id, opSeal, &asked.sealAsked, nil)
	case what < 6:
		return c.ask(ctx, id, opDelete, &asked.deadAsked, &asked.deadBefore)
	case what < 15:
		ms := c.clock.ms.Load() - rng.Int64N(100)
		c.mu.Lock()
		asked.trimAsked = max(asked.trimAsked, ms)
		c.mu.Unlock()
		return c.engine.store.Trim(ctx, id, ms)
	default:
		size := []int{1, 100, 3000}[rng.IntN(3)]
		return c.append(ctx, id, asked, entries(id, n, 1+rng.IntN(8), size))
	}
}

func (c *crashRun) pick(rng *rand.Rand) (ID, *crashShard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastID == 0 {
		return 0, nil
	}
	id := c.lastID - ID(rng.Uint64N(min(6, uint64(c.lastID))))
	return id, c.shards[id]
}

func (c *crashRun) create(ctx context.Context) error {
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.mu.Unlock()
	if err := c.engine.do(ctx, opCreate, id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards[id] = &crashShard{created: true, acked: 1}
	return nil
}

func (c *crashRun) ask(ctx context.Context, id ID, op byte, asked, answered *bool) error {
	c.mu.Lock()
	*asked = true
	c.mu.Unlock()
	err := c.engine.do(ctx, op, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered != nil {
		*answered = err == nil
	}
	return err
}

func (c *crashRun) append(ctx context.Context, id ID, asked *crashShard, list []Entry) error {
	numbers, lsn, err := c.engine.sequence(ctx, id, list)
	if errors.Is(err, ErrSealed) || errors.Is(err, ErrDeleted) {
		return nil
	}
	if err != nil {
		return err
	}
	next := numbers[len(numbers)-1].Index + 1
	c.mu.Lock()
	for uint64(len(asked.sequenced)) < next-1 {
		asked.sequenced = append(asked.sequenced, Record{})
	}
	for i, number := range numbers {
		if asked.sequenced[number.Index-1].Index != 0 {
			err = fmt.Errorf("shard %d gave the number %+v twice", id, number)
		}
		asked.sequenced[number.Index-1] = Record{number, list[i].PartitionKey, list[i].Data}
	}
	c.mu.Unlock()
	if err := errors.Join(err, c.engine.log.Wait(ctx, lsn)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked.acked = max(asked.acked, next)
	return nil
}

// verify compares the records that a start has found with those that must and may be there, and
// then expects the found ones in the next life.
func (c *crashRun) verify(t *testing.T, must map[ID]least) {
	for id, asked := range c.shards {
		want, sh := must[id], c.engine.store.Shard(id)
		switch {
		case sh == nil && want.created && !asked.deadAsked:
			t.Errorf("shard %d is gone", id)
		case sh != nil && want.dead:
			t.Errorf("shard %d was deleted, and is back", id)
		case sh != nil:
			if err := asked.verify(t.Context(), want, sh); err != nil {
				t.Errorf("shard %d: %v", id, err)
			}
		}
		if sh == nil {
			delete(c.shards, id)
			continue
		}
		_, next := sh.Bounds()
		sealed := sh.Sealed()
		c.shards[id] = &crashShard{
			sequenced: asked.sequenced[:min(int(next)-1, len(asked.sequenced))], acked: next,
			trimAsked: asked.trimAsked, created: true, sealAsked: sealed,
		}
	}
	for _, sh := range c.engine.store.all() { // made, but not answered
		if c.shards[sh.id] == nil {
			if _, next := sh.Bounds(); next != 1 {
				t.Errorf("shard %d has come from nowhere, with records up to %d", sh.id, next)
			}
			c.shards[sh.id] = &crashShard{created: true, acked: 1, sealAsked: sh.Sealed()}
		}
	}
}

func (asked *crashShard) verify(ctx context.Context, want least, sh *Shard) error {
	oldest, next := sh.Bounds()
	switch {
	case next < want.next || next > uint64(len(asked.sequenced))+1:
		return fmt.Errorf("records up to %d, want %d to %d", next, want.next,
			len(asked.sequenced)+1)
	case oldest < want.oldest:
		return fmt.Errorf("oldest %d: trimmed ones from %d on are back", want.oldest, oldest)
	case oldest > 1 && asked.sequenced[oldest-2].Arrival >= asked.trimAsked:
		return fmt.Errorf("oldest %d: that was never asked for", oldest)
	case want.sealed && !sh.Sealed() || sh.Sealed() && !asked.sealAsked:
		return fmt.Errorf("sealed: %v", sh.Sealed())
	case next > 1 && sh.LastArrival() != asked.sequenced[next-2].Arrival:
		return fmt.Errorf("last arrival %d, not %d", sh.LastArrival(),
			asked.sequenced[next-2].Arrival)
	}
	got, err := readAll(ctx, sh)
	if err != nil {
		return err
	}
	if !sameRecords(got, asked.sequenced[oldest-1:next-1]) {
		return fmt.Errorf("records [%d, %d) are not those that were appended", oldest, next)
	}
	return nil
}

var _ wal.Machine = (*catalogue)(nil)
