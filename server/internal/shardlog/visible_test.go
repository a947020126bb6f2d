package shardlog

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// gate makes the syncs of the log wait while it is shut.
type gate struct{ open atomic.Pointer[chan struct{}] }

func (g *gate) hook(op vfs.Op) error {
	open := g.open.Load()
	if op.Kind == vfs.OpSync && !strings.HasSuffix(op.Name, segmentSuffix) && open != nil {
		<-*open
	}
	return nil
}

// No path shows a record that is not durable, and waiting readers do not block other calls.
func TestVisibleIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		e := setup{fs: vfs.Inject(vfs.NewMem(), g.hook)}.mustOpen(t)
		defer e.mustClose(t)
		ctx := t.Context()
		for id := ID(1); id <= 4; id++ {
			if err := e.do(ctx, opCreate, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []ID{3, 4} {
			if _, err := e.append(ctx, id, entries(id, 0, 10, 100)...); err != nil {
				t.Fatal(err)
			}
		}
		before := e.store.Shard(3).LastArrival()
		time.Sleep(time.Second) // virtual: everything is drained

		open := make(chan struct{})
		g.open.Store(&open)
		sh := e.store.Shard(1)
		done := make(chan string, 10)
		wait := func(what string, id ID, index uint64) {
			sh := e.store.Shard(id)
			go func() {
				if err := sh.Wait(ctx, index); err != nil {
					what = err.Error()
				}
				done <- what
			}()
		}
		wait("append", 1, 1)
		wait("seal", 2, 1)
		wait("delete", 4, 11)
		_, lsn, err := e.sequence(ctx, 1, entries(1, 0, 3, 100))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = e.do(ctx, opSeal, 2) }()
		go func() { _ = e.store.Trim(ctx, 3, time.Now().UnixMilli()) }()
		go func() { _ = e.do(ctx, opDelete, 4) }()
		time.Sleep(time.Minute)
		synctest.Wait()

		if oldest, next := sh.Bounds(); oldest != 1 || next != 1 || sh.LastArrival() != 0 {
			t.Errorf("unsynced records are visible: [%d, %d), %d", oldest, next, sh.LastArrival())
		}
		if got, err := sh.Read(ctx, 1, 10, 1000); len(got) != 0 || err != nil {
			t.Errorf("%d unsynced records are read, %v", len(got), err)
		}
		if at, err := sh.IndexAt(ctx, 1); at != 1 || err != nil {
			t.Errorf("an unsynced record is found: %d, %v", at, err)
		}
		if e.store.Shard(2).Sealed() {
			t.Error("an unsynced seal is visible")
		}
		if oldest, next := e.store.Shard(3).Bounds(); oldest != 1 || next != 11 ||
			e.store.Shard(3).LastArrival() != before {
			t.Errorf("an unsynced trim is visible: [%d, %d)", oldest, next)
		}
		if dead := e.store.Shard(4); dead == nil {
			t.Error("an unsynced deletion is visible")
		} else if got, err := dead.Read(ctx, 1, 99, 99999); len(got) != 10 || err != nil {
			t.Errorf("an unsynced deletion has removed records: %d left, %v", len(got), err)
		}
		select {
		case what := <-done:
			t.Errorf("a wait has ended before its %s was durable", what)
		default:
		}

		close(open)
		if err := e.log.Wait(ctx, lsn); err != nil {
			t.Fatal(err)
		}
		if got, err := sh.Read(ctx, 1, 10, 1000); len(got) != 3 || err != nil {
			t.Errorf("%d of 3 records, %v", len(got), err)
		}
		synctest.Wait()
		ended := map[string]bool{<-done: true, <-done: true, <-done: true}
		if !ended["append"] || !ended["seal"] || !ended["delete"] {
			t.Errorf("what has ended: %v", ended)
		}
		if oldest, _ := e.store.Shard(3).Bounds(); oldest != 11 || !e.store.Shard(2).Sealed() ||
			e.store.Shard(4) != nil {
			t.Errorf("the trim, the seal or the deletion is not visible")
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := setup{fs: vfs.NewMem()}.mustOpen(t)
		ctx := t.Context()
		if err := e.do(ctx, opCreate, 1); err != nil {
			t.Fatal(err)
		}
		sh := e.store.Shard(1)
		if _, err := e.append(ctx, 1, entry(1, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if err := sh.Wait(ctx, 1); err != nil {
			t.Errorf("a record is there: %v", err)
		}
		late, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := sh.Wait(late, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no record came: %v", err)
		}
		ended := make(chan error, 100)
		for range 50 {
			go func() { ended <- sh.Wait(ctx, 3) }()
		}
		synctest.Wait()
		if _, err := e.append(ctx, 1, entry(1, 1, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("record 2 was taken for record 3")
		}
		if _, err := e.append(ctx, 1, entry(1, 2, 1)); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		go func() { ended <- sh.Wait(ctx, 99) }()
		synctest.Wait()
		e.mustClose(t)
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("wait on a store that is closed: %v", err)
		}
		if _, err := sh.Read(ctx, 1, 1, 1); !errors.Is(err, ErrClosed) {
			t.Errorf("read from a store that is closed: %v", err)
		}
		if err := e.store.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}

// Records that readers hold never change, and the memory of drained records is released: the test
// passes many times MaxPending through.
func TestBackPressure(t *testing.T) {
	e := setup{fs: vfs.NewMem(), maxPending: 64 << 10}.mustOpen(t)
	defer e.mustClose(t)
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	var held []Record
	for i := range 100 {
		if _, err := e.append(ctx, 1, entries(1, i*5, 5, 4000)...); err != nil {
			t.Fatal(err)
		}
		got, err := e.store.Shard(1).Read(ctx, uint64(i*5+1), 5, 1<<20)
		if err != nil || len(got) != 5 {
			t.Fatalf("%d records, %v", len(got), err)
		}
		held = append(held, got...)
	}
	e.drained(t)
	for i, r := range held {
		want := entry(1, i, 4000)
		if r.PartitionKey != want.PartitionKey || string(r.Data) != string(want.Data) {
			t.Fatalf("record %d has changed in the reader's hands", r.Index)
		}
	}
	if err := e.log.Sequence(ctx, 60<<10, func(*wal.Tx) {}); err != nil {
		t.Error(err)
	}
}
