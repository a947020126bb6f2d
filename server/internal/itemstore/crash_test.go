package itemstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// soak multiplies the size of the random tests.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// lives is how often the power is lost in a run.
const lives = 5

// writer writes one item over and over. Its step k deletes the item if k is a multiple of 7, and
// otherwise puts it with n = k. So the item shows the last step.
type writer struct {
	key                         Key
	attempted, acked, witnessed atomic.Int64
	moved                       chan struct{} // a step was acknowledged
}

func (w *writer) at(k int64) Item {
	if k%7 == 0 {
		return nil
	}
	return Item{"id": w.key.Hash, "n": NumberOf(k)}
}

func (w *writer) run(ctx context.Context, b bench, table *Table) error {
	for {
		k := w.attempted.Add(1)
		_, err := b.Update(ctx, table, w.key, 50,
			func(Item) (Item, error) { return w.at(k), nil })
		if err != nil {
			return err
		}
		w.acked.Store(k)
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}
}

// watch reads the item over and over.
func (w *writer) watch(ctx context.Context, b bench, table *Table) error {
	for ctx.Err() == nil { // a read of durable state does not look at its context
		item, err := b.Get(ctx, table, w.key)
		if err != nil {
			return err
		}
		if n, ok := item["n"].(Number); ok {
			k, _ := n.small()
			w.witnessed.Store(k)
		}
		runtime.Gosched()
	}
	return ctx.Err()
}

// check compares the item after a crash with the writer's knowledge just before it, and sets the
// writer back to it.
func (w *writer) check(item Item, least, most int64) error {
	for k := least; k <= most; k++ {
		if found := w.at(k); Equal(found, item) || (found == nil && item == nil) {
			w.attempted.Store(k)
			w.acked.Store(k)
			w.witnessed.Store(0)
			return nil
		}
	}
	return fmt.Errorf("%v: found %v, of the steps %d to %d", w.key.Hash, item, least, most)
}

func TestCrashes(t *testing.T) {
	for run := range 4 * soak() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			crashes(t, rand.New(rand.NewPCG(seed, 0)))
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
	t.Logf("soak: %d seeds, %d crashes", 4*soak(), 4*soak()*lives)
}

func crashes(t *testing.T, rng *rand.Rand) {
	fs := vfs.NewCrashable()
	b := open(t, fs)
	b.create(t, "table", byID)
	writers := make([]*writer, 4)
	for i := range writers {
		writers[i] = &writer{
			key: id(fmt.Sprint("writer-", i)), moved: make(chan struct{}, 1),
		}
	}
	for range lives {
		table := b.table(t, "table")
		// A table that is created and dropped all the time, beside.
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		start := func(loop func() error) {
			group.Go(func() {
				if err := loop(); !errors.Is(err, ctx.Err()) {
					t.Error(err)
					stop()
				}
			})
		}
		for _, w := range writers {
			start(func() error { return w.run(ctx, b, table) })
			start(func() error { return w.watch(ctx, b, table) })
		}
		start(func() error { return churn(ctx, b) })

		end := writers[0].acked.Load() + int64(rng.IntN(400))
		for ctx.Err() == nil && writers[0].acked.Load() < end {
			select {
			case <-writers[0].moved:
			case <-ctx.Done():
			}
		}
		if rng.IntN(4) == 0 {
			group.Go(func() { _ = b.log.Checkpoint(ctx) }) // a crash in it is the point
		}
		least := make([]int64, len(writers))
		for i, w := range writers {
			least[i] = max(w.acked.Load(), w.witnessed.Load())
		}
		after := fs.Crash(rng)
		most := make([]int64, len(writers))
		for i, w := range writers {
			most[i] = w.attempted.Load()
		}
		stop()
		group.Wait()
		b.close(t)

		fs = after
		b = open(t, fs)
		table = b.table(t, "table")
		for i, w := range writers {
			if err := w.check(b.get(t, table, w.key), least[i], most[i]); err != nil {
				t.Error(err)
			}
		}
	}
	b.close(t)
}

// churn creates and drops a table with an item.
func churn(ctx context.Context, b bench) error {
	for {
		table, err := b.CreateTable(ctx, Meta{World: world, Name: "churn", Schema: byID})
		if errors.Is(err, ErrTableExists) {
			if table, err = b.Table(ctx, world, "churn"); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		_, err = b.Update(ctx, table, id("a"), 0,
			func(Item) (Item, error) { return Item{"id": String("a")}, nil })
		if err != nil {
			return err
		}
		if _, err = b.DropTable(ctx, table, func(Stats) error { return nil }); err != nil {
			return err
		}
	}
}
