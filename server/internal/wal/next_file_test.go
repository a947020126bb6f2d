package wal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// nextFile is a log on a disk that makes files slowly, or has no room for them.
type nextFile struct {
	*bundle
	held  atomic.Bool // a file is being made until made gets the result
	made  chan error
	full  atomic.Bool // there is no room for a file
	hangs atomic.Bool // writes hang until goOn is closed
	goOn  chan bool
}

func slowlyMade(t *testing.T) *nextFile {
	t.Helper()
	n := &nextFile{made: make(chan error), goOn: make(chan bool)}
	cfg := config(vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.OpWrite && n.hangs.Load():
			<-n.goOn
		case op.Kind == vfs.OpAllocate && n.held.Load():
			return <-n.made
		case op.Kind == vfs.OpAllocate && n.full.Load():
			return vfs.ErrNoSpace
		}
		return nil
	}))
	cfg.MaxPending = 0
	n.bundle = start(t, cfg)
	n.journal.before(noCheckpoint)
	synctest.Wait()
	return n
}

// puts commits frames until one fails. Its result comes over the channel.
func (n *nextFile) puts(ctx context.Context) <-chan error {
	result := make(chan error, 1)
	go func() {
		for id := uint64(0); ; id++ {
			lsn, err := n.put(ctx, id, 1000)
			if err == nil {
				err = n.Wait(ctx, lsn)
			}
			if err != nil {
				result <- err
				return
			}
		}
	}()
	return result
}

// allDurable checks that no frame of the log's order waits for a file, and that a change that frees
// space may use the reserve.
func (n *nextFile) allDurable(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if durable, end := n.Durable(), n.journal.end(); durable != end {
		t.Fatalf("the log is durable up to %d of %d", durable, end)
	}
	if _, err := n.free(t.Context(), 1<<32, 1900); err != nil {
		t.Fatalf("a deletion: %v", err)
	}
}

// goesOn checks that the log takes frames once the disk has room.
func (n *nextFile) goesOn(t *testing.T) {
	t.Helper()
	n.full.Store(false)
	n.journal.before(nil)
	time.Sleep(2 * prepareRetry)
	n.commit(t, 1000, 1<<33)
	n.stop(t)
}

// TestFramesWaitForTheNextFile: while the next file is being made, frames that would reach into the
// reserve wait outside the log's order, and deletions pass them. If the disk turns out to be full,
// they are refused.
func TestFramesWaitForTheNextFile(t *testing.T) {
	for name, result := range map[string]error{"made": nil, "full": vfs.ErrNoSpace} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := slowlyMade(t)
				n.held.Store(true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := n.puts(ctx)
				synctest.Wait()
				before := n.journal.end()
				if len(ended) > 0 {
					t.Fatalf("while the file is being made: %v", <-ended)
				}
				n.full.Store(result != nil)
				n.made <- result
				synctest.Wait()
				if result == nil {
					if grown := n.journal.end() - before; grown < LSN(n.cfg.FileSize/2) {
						t.Errorf("with the file the log grew by %d bytes", grown)
					}
				} else if len(ended) == 0 || !errors.Is(<-ended, ErrStalled) {
					t.Error("a frame is not refused on a full disk")
				}
				n.allDurable(t)
				n.held.Store(false)
				if result == nil {
					n.made <- nil
					cancel()
					<-ended
				}
				n.goesOn(t)
			})
		})
	}
}

// TestAWaitForTheNextFileEnds: with the log, when the log refuses frames, with the caller's context,
// and with a claim that was not used.
func TestAWaitForTheNextFileEnds(t *testing.T) {
	failure := errors.New("the log has failed")
	for name, c := range map[string]struct {
		end  func(n *nextFile, cancel, unclaim func())
		want error
	}{
		"failure": {func(n *nextFile, _, _ func()) { n.poison(failure) }, failure},
		"close": {func(n *nextFile, _, _ func()) {
			go func() { _ = n.Close(context.Background()) }()
		}, ErrClosed},
		"obstacle": {func(n *nextFile, _, _ func()) { n.Obstruct(failure) }, failure},
		"no room":  {func(n *nextFile, _, _ func()) { n.setWriteErr(vfs.ErrNoSpace) }, ErrStalled},
		"context":  {func(_ *nextFile, cancel, _ func()) { cancel() }, context.Canceled},
		"claim":    {func(_ *nextFile, _, unclaim func()) { unclaim() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := slowlyMade(t)
				n.held.Store(true)
				n.commit(t, 1000, upTo(13)...) // into the second file
				used := make(chan bool)
				go func() { // claims what is left
					_ = n.Sequence(context.Background(), 9000, func(*Tx) { <-used })
				}()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := n.put(ctx, 1<<33, 1000)
					ended <- err
				}()
				synctest.Wait()
				if len(ended) > 0 {
					t.Fatalf("beside the claim: %v", <-ended)
				}
				unclaim := sync.OnceFunc(func() { close(used) })
				c.end(n, cancel, unclaim)
				if err := <-ended; !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				unclaim()
				n.held.Store(false)
				n.made <- nil
				n.journal.before(nil)
				_ = n.Close(context.Background())
			})
		})
	}
}

// TestTheComingFileCounts: between two files, on a full disk, frames fit into the second one.
func TestTheComingFileCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := slowlyMade(t)
		n.full.Store(true)
		n.commit(t, 1000, upTo(11)...) // the first file has no room for two more
		n.hangs.Store(true)
		for id := range uint64(4) {
			if _, err := n.put(t.Context(), 100+id, 1000); err != nil {
				t.Errorf("frame %d: %v", id, err)
			}
			synctest.Wait()
		}
		n.hangs.Store(false)
		close(n.goOn)
		n.allDurable(t)
		n.goesOn(t)
	})
}

// TestManyQueuedFrames: while writes hang, frames fill the files that are there up to the reserve,
// and no further one.
func TestManyQueuedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := slowlyMade(t)
		n.hangs.Store(true)
		const frames = 50
		results := make(chan error, frames)
		for id := range uint64(frames) {
			go func() {
				_, err := n.put(t.Context(), id, 1736) // six fit into a file, and nearly seven
				results <- err
			}()
		}
		synctest.Wait()
		most := LSN(2*(n.cfg.FileSize-blockSize) - n.cfg.FileSize/reserveShare)
		if end := n.journal.end(); end < most*3/4 || end > most {
			t.Errorf("%d bytes are queued, at most %d wanted", end, most)
		}
		n.full.Store(true)
		n.hangs.Store(false)
		close(n.goOn)
		n.allDurable(t)
		refused := 0
		for range frames {
			switch err := <-results; {
			case errors.Is(err, ErrStalled):
				refused++
			case err != nil:
				t.Error(err)
			}
		}
		if refused == 0 || refused == frames {
			t.Errorf("%d of %d frames are refused", refused, frames)
		}
		n.goesOn(t)
	})
}

// A frame that is longer than its estimate waits for the next file within the log's order, where
// nothing passes it. Close gives up.
func TestCloseOnAFullDiskGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		synctest.Wait()
		b.journal.before(noCheckpoint)
		disk.SetLimit(disk.Used())
		durable := b.fill(t, 1000)
		err := b.SequenceFreeing(t.Context(), 8, func(tx *Tx) {
			tx.Append(KindRecords, payload(durable, 8000), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("Close = %v", err)
		}
		disk.SetLimit(0)
		b = start(t, config(disk))
		b.want(t, upTo(durable)...)
		b.stop(t)
	})
}
