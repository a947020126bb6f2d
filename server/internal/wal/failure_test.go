package wal

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func isLogFile(op vfs.Op) bool { return strings.HasSuffix(op.Name, fileSuffix) }

func TestAFailedWriteOrSyncPoisons(t *testing.T) {
	for name, fault := range map[string]struct {
		kind   vfs.OpKind
		err    error
		inline bool
	}{
		"sync":          {vfs.OpSync, nil, false},
		"full sync":     {vfs.OpSync, vfs.ErrNoSpace, false},
		"write":         {vfs.OpWrite, nil, false},
		"short write":   {vfs.OpWrite, &vfs.ShortWrite{N: 100, Err: vfs.ErrInjected}, false},
		"sync, inline":  {vfs.OpSync, nil, true},
		"write, inline": {vfs.OpWrite, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewCrashable()
				var armed atomic.Bool
				var calls atomic.Int64
				fs := vfs.Inject(disk, func(op vfs.Op) error {
					if !armed.Load() || !isLogFile(op) {
						return nil
					}
					calls.Add(1)
					if op.Kind != fault.kind {
						return nil
					}
					if fault.err != nil {
						return fault.err
					}
					return vfs.ErrInjected
				})
				cfg := config(fs)
				cfg.Inline = fault.inline
				b := start(t, cfg)
				b.commit(t, 200, upTo(5)...)
				synctest.Wait() // the preparer is done
				armed.Store(true)
				poisonedCalls(t, b, &calls)
				armed.Store(false)
				var poisoned *PoisonedError
				if err := b.Close(t.Context()); !errors.As(err, &poisoned) {
					t.Errorf("Close = %v", err)
				}
				b = start(t, config(disk))
				if n := len(b.journal.entries); n < 5 || n > 6 {
					t.Errorf("%d frames after the failure", n)
				}
				b.commit(t, 200, 7)
				found := slices.Clone(b.journal.entries)
				b.stop(t)
				b = start(t, config(disk.Crash(rand.New(rand.NewPCG(1, 2)))))
				b.want(t, found...)
				b.stop(t)
			})
		})
	}
}

// poisonedCalls makes every call on a log whose next write fails.
func poisonedCalls(t *testing.T, b *bundle, calls *atomic.Int64) {
	t.Helper()
	durable := b.Durable()
	lsn, err := b.put(t.Context(), 5, 200)
	if err != nil {
		t.Fatal(err)
	}
	var poisoned *PoisonedError
	if err := b.Wait(t.Context(), lsn); !errors.As(err, &poisoned) {
		t.Errorf("Wait = %v", err)
	}
	tried := calls.Load()
	if _, err := b.put(t.Context(), 6, 200); !errors.As(err, &poisoned) {
		t.Errorf("Sequence = %v", err)
	}
	if err := b.Checkpoint(t.Context()); !errors.As(err, &poisoned) {
		t.Errorf("Checkpoint = %v", err)
	}
	if !errors.As(b.Err(), &poisoned) || !strings.Contains(b.Err().Error(), "start again") {
		t.Errorf("Err = %v", b.Err())
	}
	if err := b.Wait(t.Context(), durable); err != nil {
		t.Errorf("Wait for an LSN that was durable before = %v", err)
	}
	if b.Durable() != durable || b.journal.visible != 5 {
		t.Errorf("Durable = %d, before %d; visible %d", b.Durable(), durable, b.journal.visible)
	}
	time.Sleep(time.Hour) // virtual
	if calls.Load() != tried {
		t.Errorf("%d more calls after the failure", calls.Load()-tried)
	}
}

func TestAFullDiskStallsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		var full atomic.Bool
		fs := vfs.Inject(disk, func(op vfs.Op) error {
			if full.Load() && (op.Kind == vfs.OpAllocate || op.Kind == vfs.OpCreate) {
				return vfs.ErrNoSpace
			}
			return nil
		})
		b := start(t, config(fs))
		synctest.Wait()
		full.Store(true)
		id := b.fill(t, 1000)
		if id < 20 {
			t.Errorf("room for %d frames in two files without the reserve", id)
		}
		if err := b.Err(); !errors.Is(err, ErrStalled) || !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("Err = %v", err)
		}
		if _, err := b.put(t.Context(), 1000, 1); !errors.Is(err, ErrStalled) {
			t.Errorf("Sequence = %v", err)
		}
		time.Sleep(time.Hour) // virtual
		if err := b.Err(); !errors.Is(err, ErrStalled) {
			t.Errorf("Err after an hour = %v", err)
		}
		full.Store(false)
		time.Sleep(prepareRetry)
		synctest.Wait()
		b.commit(t, 100, id)
		if b.Err() != nil {
			t.Errorf("Err = %v", b.Err())
		}
		b.stop(t)
		b = start(t, config(disk))
		b.want(t, upTo(id+1)...)
		b.stop(t)
	})
}

// end is the LSN of the last frame.
func (j *journal) end() LSN {
	if len(j.lsns) == 0 {
		return 0
	}
	return j.lsns[len(j.lsns)-1]
}

func TestCloseHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, config(vfs.NewMem()))
		b.journal.finish = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		b.commit(t, 100, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestAFailedCheckpointIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		failed := 0
		b.journal.finish = func(context.Context) error {
			if failed++; failed < 4 {
				return errors.New("not now")
			}
			return nil
		}
		for id := range uint64(20) { // one checkpoint is due; that it fails changes nothing
			b.commit(t, 1000, id)
		}
		begin := time.Now()
		synctest.Wait()
		for failed < 4 {
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			time.Sleep(time.Second) // virtual
			synctest.Wait()
		}
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("four attempts in %v, want 1 s + 2 s + 4 s", took)
		}
		time.Sleep(time.Hour)
		if failed != 4 {
			t.Errorf("%d attempts", failed)
		}
		snapshots(t, disk, 1)
		b.stop(t)
	})
}

// snapshots checks how many there are, finished or not.
func snapshots(t *testing.T, fs vfs.FS, want int) {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, snapshotPrefix)
	})
	if len(names) != want {
		t.Errorf("snapshots %q, want %d", names, want)
	}
}

func TestTheDirectoryIsLocked(t *testing.T) {
	fs := vfs.NewMem()
	b := start(t, config(fs))
	if _, err := Open(config(fs)); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second Open = %v", err)
	}
	b.stop(t)
	start(t, config(fs)).stop(t)
}

func TestFormat(t *testing.T) {
	for text, want := range map[string]string{
		"1\n": "", "1": "", "2\n": "", "3\n": "",
		"7\n": "", "8\n": "newer runnel", "99": "newer runnel",
		"": "number", "0\n": "number", "one": "number", "-1": "number", "1\n1": "number",
	} {
		fs := vfs.NewMem()
		start(t, config(fs)).stop(t)
		write(t, fs, "data/FORMAT", text)
		log, err := Open(config(fs))
		switch {
		case want == "" && err == nil:
			if err := log.Close(t.Context()); err != nil {
				t.Error(err)
			}
		case want == "" || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want):
			t.Errorf("FORMAT %q: %v, want %q", text, err, want)
		}
	}
	whole, _ := rotting(t)
	snapshot := clone(whole)
	start(t, config(snapshot)).stop(t)
	for name, disk := range map[string]*vfs.Mem{"log": whole, "snapshot": snapshot} {
		if err := disk.Remove("data/FORMAT"); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(config(disk)); !errors.Is(err, ErrFormat) {
			t.Errorf("a %s without FORMAT: %v", name, err)
		}
	}
}

func write(t *testing.T, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name)
	if err == nil && text != "" {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMachinesThatFail(t *testing.T) {
	fs := vfs.NewCrashable()
	b := start(t, config(fs))
	b.commit(t, 100, 0)
	disk := fs.Crash(rand.New(rand.NewPCG(3, 3))) // with a frame to replay
	b.stop(t)                                     // and fs with a snapshot to restore
	for name, c := range map[string]struct {
		fs   vfs.FS
		kind Kind
		want string
	}{
		"no machine for a frame":    {disk, KindItems, "kind 2"},
		"no machine for a snapshot": {fs, KindItems, "kind 2"},
		"Replay fails":              {disk, KindRecords, "stubborn"},
		"Restore fails":             {fs, KindRecords, "stubborn"},
	} {
		log, err := Open(config(c.fs))
		if err != nil {
			t.Fatal(err)
		}
		log.Register(c.kind, &stubborn{})
		if err := log.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := log.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := launch(done, config(disk)); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a context that is done = %v", err)
	}
	b = start(t, config(disk))
	b.want(t, 0)
	b.stop(t)
}

type stubborn struct{ silent }

func (stubborn) Restore([]byte) error     { return errors.New("stubborn") }
func (stubborn) Replay(LSN, []byte) error { return errors.New("stubborn") }

// The log calls the snapshot's functions once it is durable up to it, and not before.
func TestFinishRunsAfterTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate(vfs.NewMem())
		b := start(t, config(gate))
		synctest.Wait()
		gate.on.Store(true)
		if _, err := b.put(t.Context(), 0, 100); err != nil {
			t.Fatal(err)
		}
		<-gate.entered
		lsn, err := b.put(t.Context(), 1, 100) // not even written when the machines are frozen
		if err != nil {
			t.Fatal(err)
		}
		var at LSN
		b.journal.finish = func(context.Context) error {
			at = b.Durable()
			return nil
		}
		done := make(chan error, 1)
		go func() { done <- b.Checkpoint(t.Context()) }()
		synctest.Wait()
		gate.release <- nil
		<-gate.entered
		synctest.Wait()
		gate.open()
		if err := <-done; err != nil || at != lsn {
			t.Errorf("Checkpoint = %v; durable up to %d when its functions ran, want %d",
				err, at, lsn)
		}
		b.stop(t)
	})
}

// A file may only be recycled once the next one's first block is durable: that block records that
// the log continues there.
func TestTheLastDurableFileIsNotRecycled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		gate := newGate(disk)
		b := start(t, config(gate))
		b.commit(t, 1000, upTo(11)...) // leaves no room for the large one
		synctest.Wait()
		frozen, goOn := make(chan bool), make(chan bool)
		b.journal.finish = func(context.Context) error {
			close(frozen)
			<-goOn
			return nil
		}
		done := make(chan error, 1)
		go func() { done <- b.Checkpoint(t.Context()) }()
		<-frozen
		gate.on.Store(true)
		if _, err := b.put(t.Context(), 11, 8000); err != nil {
			t.Fatal(err)
		}
		// The committer's syncs of the new file are held; others are let through.
		for name := range gate.entered {
			if path.Base(name) == "000000000002.wal" {
				break
			}
			gate.release <- nil
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for seed := range uint64(20) {
			b := start(t, config(disk.Crash(rand.New(rand.NewPCG(seed, 1)))))
			if n := len(b.journal.entries); n < 11 {
				t.Fatalf("%d frames are left", n)
			}
			b.stop(t)
		}
		gate.open()
		b.journal.before(nil)
		b.stop(t)
	})
}

// The process dies between the making of a file and its sync: only the operating system knows the
// file's length then. The next life reuses the file, and the sync of its first block fails
// together with the power. The disk then holds a short file, which must not be taken for one that
// was cut off.
func TestASpareOfUnknownLength(t *testing.T) {
	// life starts a log on a disk of which the nth sync of a log file fails, and, if the process
	// is killed there, every change behind it.
	life := func(disk vfs.FS, n int, killed bool) {
		over := false
		b, err := launch(t.Context(), config(vfs.Inject(disk, func(op vfs.Op) error {
			if op.Kind == vfs.OpSync && isLogFile(op) {
				n--
			}
			if op.Kind.Changes() && n <= 0 && (killed || !over) {
				over = true
				return errKilled
			}
			return nil
		})))
		if err == nil {
			err = b.Close(t.Context())
		}
		if !over || err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("a sync was to fail: %v", err)
		}
	}
	for seed := range uint64(200) {
		disk := vfs.NewCrashable()
		life(disk, 1, true)
		life(disk, 1+int(seed%2), false)
		start(t, config(disk.Crash(rand.New(rand.NewPCG(seed, 1))))).stop(t)
	}
}
