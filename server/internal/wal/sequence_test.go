package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// gatedFS holds the syncs of log files until they are released, one by one.
type gatedFS struct {
	vfs.FS
	on      atomic.Bool
	entered chan string
	release chan error
	opened  chan struct{}
}

// open lets everything through from now on.
func (g *gatedFS) open() {
	g.on.Store(false)
	close(g.opened)
}

func newGate(fs vfs.FS) *gatedFS {
	g := &gatedFS{
		entered: make(chan string), release: make(chan error), opened: make(chan struct{}),
	}
	g.FS = vfs.Inject(fs, func(op vfs.Op) error {
		if !g.on.Load() || op.Kind != vfs.OpSync || !strings.HasSuffix(op.Name, fileSuffix) {
			return nil
		}
		select {
		case g.entered <- op.Name:
		case <-g.opened:
			return nil
		}
		select {
		case err := <-g.release:
			return err
		case <-g.opened:
			return nil
		}
	})
	return g
}

func TestNothingIsVisibleBeforeItsSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(vfs.NewMem())
		b := start(t, config(gate))
		synctest.Wait() // the preparer syncs too
		gate.on.Store(true)
		waited := make(chan error, 3)
		lsns := make([]LSN, 3)
		for i := range lsns {
			var err error
			if lsns[i], err = b.put(t.Context(), uint64(i), 100); err != nil {
				t.Fatal(err)
			}
			go func() { waited <- b.Wait(t.Context(), lsns[i]) }()
			if i == 0 {
				<-gate.entered // the first is being synced alone
			}
		}
		for round, visible := range []int{0, 1} {
			synctest.Wait()
			if len(waited) != visible || b.Durable() != LSN(visible*frameSize(100)) ||
				b.journal.visible != visible {
				t.Fatalf("round %d: %d waited, Durable = %d, visible = %d", round, len(waited),
					b.Durable(), b.journal.visible)
			}
			gate.release <- nil
			if round == 0 {
				<-gate.entered // the two others together
			}
		}
		synctest.Wait()
		if len(waited) != 3 || b.Durable() != lsns[2] || b.journal.visible != 3 {
			t.Fatalf("%d waited, Durable = %d, visible = %d", len(waited), b.Durable(),
				b.journal.visible)
		}
		gate.open()
		b.stop(t)
	})
}

func TestWaitRunsAfterTheDurableFunction(t *testing.T) {
	b := start(t, config(vfs.NewMem()))
	var group sync.WaitGroup
	for w := range uint64(8) {
		group.Go(func() {
			for i := range uint64(200) {
				done := false // no lock: the race detector sees if Wait is too early
				var lsn LSN
				err := b.Sequence(t.Context(), 8, func(tx *Tx) {
					lsn = tx.Append(KindItems, payload(w<<32|i, 8), func() { done = true })
				})
				if err == nil {
					err = b.Wait(t.Context(), lsn)
				}
				if err != nil || !done {
					t.Errorf("Wait = %v before the durable function", err)
					return
				}
			}
		})
	}
	group.Wait()
	b.stop(t)
}

func TestWaitForAFrameToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(vfs.NewMem())
		cfg.MarkDelay = -1
		b := start(t, cfg)
		waited := make(chan error, 1)
		go func() { waited <- b.Wait(t.Context(), LSN(2*frameSize(8))) }()
		b.commit(t, 8, 0)
		synctest.Wait()
		if len(waited) != 0 {
			t.Fatal("Wait returned too early")
		}
		b.commit(t, 8, 1)
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Wait(ctx, b.Durable()+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v", err)
		}
		go func() { waited <- b.Wait(t.Context(), b.Durable()+1) }()
		synctest.Wait()
		b.stop(t)
		if err := <-waited; !errors.Is(err, ErrClosed) {
			t.Errorf("Wait over Close = %v", err)
		}
	})
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(vfs.NewMem())
		cfg.MaxPending = 1000
		b := start(t, cfg)
		ctx := t.Context()
		hold := func(size int) error {
			return b.Sequence(ctx, size, func(tx *Tx) { tx.Hold(size) })
		}
		if err := errors.Join(hold(600), hold(400)); err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 4)
		for i, size := range []int{500, 5000, 10, 10} { // too much, alone, and behind it
			go func() {
				if err := hold(size); err != nil {
					t.Error(err)
				}
				order <- i
			}()
			synctest.Wait()
		}
		step := func(release int, want ...int) {
			t.Helper()
			b.Release(release)
			synctest.Wait()
			if len(order) != len(want) {
				t.Fatalf("%d went on, want %v", len(order), want)
			}
			sum := 0
			for range want {
				sum += <-order
			}
			for _, i := range want {
				sum -= i
			}
			if sum != 0 {
				t.Fatalf("others than %v went on", want)
			}
		}
		step(400)      // 600 held
		step(100, 0)   // 500, and then 500 more
		step(999)      // 1 held: the large one waits to be alone
		step(1, 1)     // and is; nobody fits beside it
		step(4000)     // 1000 held
		step(20, 2, 3) // now both of the rest fit
		if err := b.Sequence(ctx, 0, func(*Tx) {}); err != nil {
			t.Fatal(err)
		}
		b.stop(t)
	})
}

func TestGivingUpWaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(vfs.NewMem())
		cfg.MaxPending = 100
		b := start(t, cfg)
		if err := b.Sequence(t.Context(), 90, func(tx *Tx) { tx.Hold(90) }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		called := false
		small := make(chan error, 1)
		go func() {
			time.Sleep(time.Second) // virtual: after the large one has queued
			small <- b.Sequence(t.Context(), 10, func(*Tx) {})
		}()
		err := b.Sequence(ctx, 50, func(*Tx) { called = true })
		if !errors.Is(err, context.DeadlineExceeded) || called {
			t.Errorf("Sequence = %v, called %v", err, called)
		}
		if err := <-small; err != nil { // it was behind the one that gave up
			t.Error(err)
		}
		done, stop := context.WithCancel(t.Context())
		stop()
		if err := b.Sequence(done, 1, func(*Tx) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("Sequence with a context that is done = %v", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- b.Sequence(t.Context(), 50, func(*Tx) {}) }()
		synctest.Wait()
		b.stop(t)
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("Sequence over Close = %v", err)
		}
	})
}

func TestPendingFramesTakeRoomUntilTheyAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(vfs.NewMem())
		cfg := config(gate)
		cfg.MaxPending = 1000
		b := start(t, cfg)
		synctest.Wait()
		gate.on.Store(true)
		if _, err := b.put(t.Context(), 0, 900); err != nil {
			t.Fatal(err)
		}
		<-gate.entered
		done := make(chan error, 1)
		go func() {
			_, err := b.put(t.Context(), 1, 100)
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("there was room beside a frame that is not durable")
		}
		gate.open()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		b.stop(t)
	})
}

func TestAPanicPoisons(t *testing.T) {
	b := start(t, config(vfs.NewMem()))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = b.Sequence(t.Context(), 1, func(*Tx) { panic("half way") })
	}()
	var poisoned *PoisonedError
	if err := b.Sequence(t.Context(), 1, func(*Tx) {}); !errors.As(err, &poisoned) {
		t.Errorf("Sequence = %v", err)
	}
	if err := b.Close(t.Context()); !errors.As(err, &poisoned) {
		t.Errorf("Close = %v", err)
	}
}

func TestCallsBeforeStart(t *testing.T) {
	log, err := Open(config(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Sequence":   log.Sequence(t.Context(), 1, func(*Tx) { t.Error("called") }),
		"Wait":       log.Wait(t.Context(), 1),
		"Checkpoint": log.Checkpoint(t.Context()),
		"Err":        log.Err(),
	} {
		if !errors.Is(err, errNotStarted) {
			t.Errorf("%s before Start: %v", name, err)
		}
	}
	log.Register(KindRecords, &journal{})
	if err := log.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := log.Start(t.Context()); err == nil {
		t.Error("a second Start succeeded")
	}
	if err := errors.Join(log.Close(t.Context()), log.Close(t.Context())); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"Sequence":   log.Sequence(t.Context(), 1, func(*Tx) { t.Error("called") }),
		"Wait":       log.Wait(t.Context(), 1),
		"Checkpoint": log.Checkpoint(t.Context()),
		"Err":        log.Err(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if err := log.Wait(t.Context(), 0); err != nil {
		t.Errorf("Wait for a durable LSN, after Close: %v", err)
	}
}

func TestConfigReportsEveryFault(t *testing.T) {
	_, err := Open(Config{SyncInterval: -1, FileSize: 1, MaxPending: -1})
	for _, want := range []string{"FS", "Dir", "SyncInterval", "FileSize", "MaxPending"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
}

func ExampleLog() {
	ctx := context.Background()
	log, err := Open(Config{FS: vfs.NewMem(), Dir: "data"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Register(KindItems, &silent{})
	if err := log.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	var lsn LSN
	err = log.Sequence(ctx, 5, func(tx *Tx) {
		lsn = tx.Append(KindItems, []byte("hello"), func() { fmt.Println("durable") })
	})
	waited := log.Wait(ctx, lsn)
	fmt.Println(err, waited, log.Close(ctx))
	// Output:
	// durable
	// <nil> <nil> <nil>
}

func TestAnInvalidFramePoisons(t *testing.T) {
	b := start(t, config(vfs.NewMem()))
	var lsn LSN
	err := b.Sequence(t.Context(), 1, func(tx *Tx) { lsn = tx.Append(0, nil, nil) })
	if err != nil {
		t.Fatal(err)
	}
	var poisoned *PoisonedError
	if err := b.Wait(t.Context(), lsn); !errors.As(err, &poisoned) {
		t.Errorf("Wait = %v", err)
	}
	if err := b.Close(t.Context()); !errors.As(err, &poisoned) {
		t.Errorf("Close = %v", err)
	}
}

// Many give up while many are let in: whatever the order, the room is all there in the end.
func TestNoRoomIsLostByGivingUp(t *testing.T) {
	r := &room{max: 100 << 10}
	var group sync.WaitGroup
	for w := range int64(16) {
		group.Go(func() {
			for i := range int64(200) {
				ctx, cancel := context.WithCancel(t.Context())
				if (w+i)%3 == 0 {
					go cancel()
				}
				// Some are larger than everything, and some smaller than smallFrames.
				size := (1 + (w*7+i)%150) << 10
				if r.take(ctx, size, false) == nil {
					r.add(-size, -size)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if r.mu.used != 0 || r.queued.Load() != 0 || len(r.mu.waiting) != 0 {
		t.Errorf("%d used, %d queued and %d waiting", r.mu.used, r.queued.Load(), len(r.mu.waiting))
	}
}

// A small caller goes before large ones that wait for the room, or for others' writes. But small
// ones do not keep a large one out for ever.
func TestSmallFramesGoFirst(t *testing.T) {
	const most, small = 64 << 20, 16 << 10
	for name, first := range map[string][2]int64{ // used, and queued
		"the room is full": {most, 0}, "much awaits its write": {most / queuedPart, most / queuedPart},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &room{max: most}
			r.add(first[0], first[1])
			large := make(chan error, 1)
			go func() { large <- r.take(t.Context(), most/queuedPart, false) }()
			synctest.Wait()
			for range most / bypassPart / small {
				if err := r.take(t.Context(), small, false); err != nil {
					t.Fatal(err)
				}
			}
			last := make(chan error, 1)
			go func() { last <- r.take(t.Context(), small, false) }()
			synctest.Wait()
			if len(last) > 0 {
				t.Errorf("%s: small frames go before a large one for ever", name)
			}
			if len(large) > 0 {
				t.Errorf("%s: a large frame did not wait", name)
			}
			r.add(-most/bypassPart, -most/bypassPart)
			r.add(-first[0], -first[1])
			if err := errors.Join(<-large, <-last); err != nil {
				t.Error(err)
			}
		})
	}
}

// The pieces of large calls leave room in the log's queue for the batches of others: little awaits
// its write before them.
func TestLargePiecesQueueLess(t *testing.T) {
	const most, piece, batch = 64 << 20, 1 << 20, 512 << 10
	synctest.Test(t, func(t *testing.T) {
		r := &room{max: most}
		if err := errors.Join(r.take(t.Context(), piece, false), r.take(t.Context(), piece, false)); err != nil {
			t.Fatal(err)
		}
		for range 4 { // ordinary batches may still join the queue
			if err := r.take(t.Context(), batch, false); err != nil {
				t.Fatal(err)
			}
		}
		third := make(chan error, 1)
		go func() { third <- r.take(t.Context(), piece, false) }()
		synctest.Wait()
		if len(third) > 0 {
			t.Errorf("a third piece joined %d bytes in the queue", r.queued.Load())
		}
		r.add(-4*batch, -4*batch)
		r.add(-piece, -piece)
		if err := <-third; err != nil {
			t.Error(err)
		}
	})
}
