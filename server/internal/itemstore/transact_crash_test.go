package itemstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// mover moves one item between two tables, a transaction a step: after step k it is in table
// k%2 with n = k, and in no other.
type mover struct {
	name             string
	attempted, acked atomic.Int64
	moved            chan struct{}
}

func (m *mover) run(ctx context.Context, b bench, tables [2]*Table) error {
	for {
		k := m.attempted.Add(1)
		item := Item{"id": String(m.name), "n": NumberOf(k), "owner": String("o")}
		token := &Token{World: world, Text: fmt.Sprint(m.name, k), At: k}
		_, err := b.Transact(ctx, []Step{
			{Table: tables[(k+1)%2], Key: id(m.name), Decide: give(nil)},
			{Table: tables[k%2], Key: id(m.name), Decide: give(item)},
		}, 100, token)
		if err != nil {
			return err
		}
		m.acked.Store(k)
		select {
		case m.moved <- struct{}{}:
		default:
		}
	}
}

// check finds the step that a crash has left, and sets the mover back to it.
func (m *mover) check(t *testing.T, b bench, tables [2]*Table, least, most int64) error {
	var found []Item
	for i, table := range tables {
		item := b.get(t, table, id(m.name))
		page, err := b.Scan(t.Context(), table, Range{
			Index: byOwner.Name, Hash: String("o"),
			Sort: Sort{Low: String(m.name), High: String(m.name)},
		})
		if err != nil {
			return err
		}
		if (len(page.Items) == 1) != (item != nil) {
			return fmt.Errorf("table %d has %v, its index %v", i, item, page.Items)
		}
		if item != nil {
			found = append(found, item)
		}
	}
	switch {
	case len(found) == 0 && least == 0:
		m.attempted.Store(0)
		m.acked.Store(0)
		return nil
	case len(found) != 1:
		return fmt.Errorf("a transaction in halves: %v", found)
	}
	k, _ := found[0]["n"].(Number).small()
	if k < least || k > most || b.get(t, tables[k%2], id(m.name)) == nil {
		return fmt.Errorf("found %v, of the steps %d to %d", found[0], least, most)
	}
	token := &Token{World: world, Text: fmt.Sprint(m.name, k), At: k}
	outcome, err := b.Transact(t.Context(), nil, 0, token)
	if err != nil || !outcome.Repeated {
		return fmt.Errorf("the token of step %d is lost: %w", k, err)
	}
	m.attempted.Store(k)
	m.acked.Store(k)
	return nil
}

func TestTransactionCrashes(t *testing.T) {
	for run := range 4 * soak() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			transactionCrashes(t, rand.New(rand.NewPCG(seed, 0)))
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
	t.Logf("soak: %d seeds, %d crashes", 4*soak(), 4*soak()*lives)
}

func transactionCrashes(t *testing.T, rng *rand.Rand) {
	fs := vfs.NewCrashable()
	b := open(t, fs)
	for _, name := range []string{"one", "two"} {
		_, err := b.CreateTable(t.Context(), Meta{
			World: world, Name: name, Schema: byID, Indexes: []Index{byOwner},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	movers := make([]*mover, 4)
	for i := range movers {
		movers[i] = &mover{name: fmt.Sprint("mover-", i), moved: make(chan struct{}, 1)}
	}
	for range lives {
		tables := [2]*Table{b.table(t, "one"), b.table(t, "two")}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for _, m := range movers {
			group.Go(func() {
				if err := m.run(ctx, b, tables); !errors.Is(err, ctx.Err()) {
					t.Error(err)
					stop()
				}
			})
		}
		end := movers[0].acked.Load() + int64(rng.IntN(200))
		for ctx.Err() == nil && movers[0].acked.Load() < end {
			select {
			case <-movers[0].moved:
			case <-ctx.Done():
			}
		}
		if rng.IntN(3) == 0 {
			group.Go(func() { _ = b.log.Checkpoint(ctx) }) // a crash in it is the point
		}
		least := make([]int64, len(movers))
		for i, m := range movers {
			least[i] = m.acked.Load()
		}
		after := fs.Crash(rng)
		most := make([]int64, len(movers))
		for i, m := range movers {
			most[i] = m.attempted.Load()
		}
		stop()
		group.Wait()
		b.close(t)

		fs = after
		b = open(t, fs)
		tables = [2]*Table{b.table(t, "one"), b.table(t, "two")}
		for i, m := range movers {
			if err := m.check(t, b, tables, least[i], most[i]); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	b.close(t)
}
