package itemstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
)

var byNumber = Index{
	Name: "byNumber", Projection: ProjectKeys,
	Schema: Schema{Hash: KeyAttribute{"v", KindNumber}},
}

// gate holds the syncs of a file system back while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{}
}

func (g *gate) hook(op vfs.Op) error {
	if op.Kind != vfs.OpSync {
		return nil
	}
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return nil
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// TestNothingIsVisibleBeforeItIsDurable holds a write's sync back and sees that no call that
// would show its effect returns; then lets it go, and all of them do.
func TestNothingIsVisibleBeforeItIsDurable(t *testing.T) {
	put := Item{"id": String("a"), "v": NumberOf(2)}
	failed := errors.New("the condition does not hold")
	for name, write := range map[string]func(ctx context.Context, b bench, table *Table) error{
		"put": func(ctx context.Context, b bench, table *Table) error {
			_, err := b.Update(ctx, table, id("a"), 0,
				func(Item) (Item, error) { return put, nil })
			return err
		},
		"delete": func(ctx context.Context, b bench, table *Table) error {
			_, err := b.Update(ctx, table, id("a"), 0,
				func(Item) (Item, error) { return nil, nil })
			return err
		},
		"transaction": func(ctx context.Context, b bench, table *Table) error {
			_, err := b.Transact(ctx, []Step{{Table: table, Key: id("a"), Decide: give(put)}}, 0,
				&Token{World: world, Text: "token", At: 1})
			return err
		},
		"drop": func(ctx context.Context, b bench, table *Table) error {
			_, err := b.DropTable(ctx, table, func(Stats) error { return nil })
			return err
		},
	} {
		reads := map[string]func(ctx context.Context, b bench, table *Table) error{
			"get": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Get(ctx, table, id("a"))
				return err
			},
			"scan": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Scan(ctx, table, Range{})
				return err
			},
			"scan of an index": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Scan(ctx, table, Range{Index: byNumber.Name})
				return err
			},
			"failed transaction": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Transact(ctx, []Step{{
					Table: table, Key: id("a"),
					Decide: func(Item) (Item, error) { return nil, failed },
				}}, 0, nil)
				return err
			},
			"repeated transaction": func(ctx context.Context, b bench, _ *Table) error {
				_, err := b.Transact(ctx, nil, 0, &Token{World: world, Text: "token", At: 1})
				return err
			},
			"check of a transaction": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Transact(ctx, []Step{{
					Table: table, Key: id("a"), Check: true, Decide: give(nil),
				}}, 0, nil)
				return err
			},
			"describe": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Describe(ctx, table)
				return err
			},
			"failed condition": func(ctx context.Context, b bench, table *Table) error {
				_, err := b.Update(ctx, table, id("a"), 0,
					func(Item) (Item, error) { return nil, failed })
				return err
			},
			"failed create": func(ctx context.Context, b bench, _ *Table) error {
				_, err := b.CreateTable(ctx, Meta{World: world, Name: "table", Schema: byID})
				return err
			},
			"look-up": func(ctx context.Context, b bench, _ *Table) error {
				_, err := b.Table(ctx, world, "table")
				return err
			},
			"list": func(ctx context.Context, b bench, _ *Table) error {
				_, err := b.Names(ctx, wire.World{})
				return err
			},
		}
		if name != "drop" { // the table was there before
			delete(reads, "failed create")
			delete(reads, "look-up")
			delete(reads, "list")
		}
		for read, call := range reads {
			t.Run(name+", "+read, func(t *testing.T) { shownLate(t, write, call, failed) })
		}
	}
}

func shownLate(
	t *testing.T, write, read func(context.Context, bench, *Table) error, expected error,
) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		b := open(t, vfs.Inject(vfs.NewMem(), g.hook))
		table, err := b.CreateTable(t.Context(), Meta{
			World: world, Name: "table", Schema: byID, Indexes: []Index{byNumber},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, table, Item{"id": String("a"), "v": NumberOf(1)})
		synctest.Wait()
		g.close()
		ended := make(chan error, 2)
		go func() { ended <- write(t.Context(), b, table) }()
		synctest.Wait()
		go func() { ended <- read(t.Context(), b, table) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("returned before the sync: %v", err)
		default:
		}
		g.open()
		for range 2 {
			err := <-ended
			if err != nil && !errors.Is(err, expected) && !errors.Is(err, ErrTableNotFound) &&
				!errors.Is(err, ErrCancelled) {
				t.Error(err)
			}
		}
		b.close(t)
	})
}

func TestReadsOfOlderStateDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		b := open(t, vfs.Inject(vfs.NewMem(), g.hook))
		table := b.create(t, "table", byID)
		b.put(t, table, Item{"id": String("a")})
		synctest.Wait()
		g.close()
		var group sync.WaitGroup
		group.Go(func() { b.put(t, table, Item{"id": String("b")}) })
		synctest.Wait()
		if got := b.get(t, table, id("a")); got == nil {
			t.Error("not there")
		}
		g.open()
		group.Wait()
		b.close(t)
	})
}
