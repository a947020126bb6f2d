package wal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// putPaced appends a frame at the pace of the checkpoints.
func (b *bundle) putPaced(ctx context.Context, id uint64, size int) error {
	return b.SequencePaced(ctx, frameSize(size), func(tx *Tx) {
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		lsn := tx.Append(KindRecords, payload(id, size), nil)
		b.journal.entries = append(b.journal.entries, id)
		b.journal.lsns = append(b.journal.lsns, lsn)
	})
}

const slowedFrame = 20 << 10

// slowed is a log with a checkpoint that lasts until end gets its result, and a goroutine that puts
// as much as it may. result gets the error of the goroutine's last put.
type slowed struct {
	*bundle
	disk   *vfs.Mem
	began  chan bool
	end    chan error
	result chan error
	cancel context.CancelFunc
}

// slow returns the log at the beginning of its first checkpoint. A backup postpones that until the
// log has so many files.
func slow(t *testing.T, files float64) *slowed {
	t.Helper()
	s := &slowed{
		disk: vfs.NewMem(), began: make(chan bool, 1), end: make(chan error),
		result: make(chan error, 1),
	}
	cfg := config(s.disk)
	cfg.FileSize, cfg.MaxPending = 256<<10, 0
	s.bundle = start(t, cfg)
	s.journal.before(func(context.Context) error {
		select {
		case s.began <- true:
		default:
		}
		return <-s.end
	})
	hold, err := Hold(s.disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	t.Cleanup(cancel)
	id := uint64(0)
	for ; s.length() < files; id++ {
		if err := s.putPaced(ctx, id, slowedFrame); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.began
	go func() {
		for ; ; id++ {
			if err := s.putPaced(ctx, id, slowedFrame); err != nil {
				s.result <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return s
}

// length returns the number of files that were ever filled.
func (s *slowed) length() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.mu.queue.end) / float64(s.cfg.FileSize)
}

// grown returns the log's length in files since its oldest one.
func (s *slowed) grown() float64 {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.mu.queue.end-s.mu.segments[0].start) / float64(s.cfg.FileSize)
}

func (s *slowed) finish(t *testing.T, err error) {
	t.Helper()
	s.journal.before(nil)
	s.end <- err
	s.cancel()
	<-s.result
	s.stop(t)
}

// TestTheLogIsPaced: puts fill the log to its bound while a checkpoint runs, and half of the rest in
// the second that a checkpoint is expected to take. Other frames do not wait, small or large.
func TestTheLogIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow(t, 1.1)
		began := time.Now()
		for _, each := range []struct {
			after time.Duration
			want  float64
		}{
			{time.Second / 10, 6.45}, {time.Second, 8.5}, {10 * time.Second, 10.54}, {time.Hour, 11},
		} {
			time.Sleep(each.after - time.Since(began))
			if n := s.grown(); n < each.want-0.2 || n > each.want {
				t.Errorf("after %v the log has %.2f files, want %.2f", each.after, n, each.want)
			}
		}
		if n := Paced(s.Log); n < 20 {
			t.Errorf("puts waited %d times", n)
		}
		began = time.Now()
		s.commit(t, 8, 1<<32)
		s.commit(t, 20_000, 1<<32+1) // large
		if _, err := s.free(t.Context(), 1<<32+2, 100); err != nil || time.Since(began) > 0 {
			t.Errorf("other frames waited for %v: %v", time.Since(began), err)
		}
		use, err := s.DiskUse()
		if most := (paceTo + 3) * s.cfg.FileSize; err != nil || use.Log > most {
			t.Errorf("the log's files have %d bytes, at most %d wanted: %v", use.Log, most, err)
		}
		s.finish(t, nil)
	})
}

// TestAPaceEnds: what ends the reason to wait ends the wait.
func TestAPaceEnds(t *testing.T) {
	failure := errors.New("a machine failed")
	for name, end := range map[string]func(s *slowed) (want error){
		"with its checkpoint":           func(s *slowed) error { s.end <- nil; return nil },
		"with its checkpoint's failure": func(s *slowed) error { s.end <- failure; return nil },
		"when the server shuts down":    func(s *slowed) error { Rush(s.Log); return nil },
		"with its caller's context":     func(s *slowed) error { s.cancel(); return context.Canceled },
		"when the log is obstructed":    func(s *slowed) error { s.Obstruct(failure); return failure },
		"when the log fails":            func(s *slowed) error { s.poison(failure); return failure },
		"when the log's write has no room": func(s *slowed) error {
			s.setWriteErr(vfs.ErrNoSpace)
			return ErrStalled
		},
		"when the log closes": func(s *slowed) error {
			go func() { _ = s.Close(context.Background()) }()
			return ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endPace(t, end) })
		})
	}
}

func endPace(t *testing.T, end func(s *slowed) error) {
	s := slow(t, 1.1)
	time.Sleep(time.Hour)
	before := s.length()
	s.journal.before(nil)
	want := end(s)
	time.Sleep(time.Second / 2)
	synctest.Wait()
	select {
	case err := <-s.result:
		if want == nil || !errors.Is(err, want) {
			t.Errorf("the put returned %v, want %v", err, want)
		}
		s.result <- err
	default:
		if n := s.length(); want != nil || n < before+1 {
			t.Errorf("the log grew from %.2f to %.2f files: the put still waits, want %v",
				before, n, want)
		}
	}
	s.cancel()
	select {
	case s.end <- nil:
	default: // its checkpoint has ended
	}
	_ = s.Close(context.Background())
	<-s.result
}

// queuing is a room with callers that come one after the other.
type queuing struct {
	*testing.T
	*room

	order chan string // those that go on
}

func (q *queuing) comes(name string, size int64, paced bool) {
	go func() {
		if err := q.take(q.Context(), size, paced); err != nil {
			q.Error(name, err)
		}
		q.order <- name
	}()
	synctest.Wait()
}

// goesOn checks that one caller, or with "" none, has gone on since the last check.
func (q *queuing) goesOn(want string) {
	q.Helper()
	synctest.Wait()
	got := ""
	if len(q.order) > 0 {
		got = <-q.order
	}
	if got != want {
		q.Errorf("%q goes on, want %q", got, want)
	}
}

const roomSize, smallSize, largeSize = 64 << 20, 1 << 10, 1 << 20

func inQueue(t *testing.T, test func(q *queuing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queuing{T: t, room: &room{max: roomSize}, order: make(chan string, 10)}
		q.add(roomSize, 0) // it is full
		test(q)
		q.goesOn("")
		if len(q.mu.paced)+len(q.mu.waiting) > 0 {
			t.Errorf("%d and %d wait in the end", len(q.mu.paced), len(q.mu.waiting))
		}
	})
}

// TestPacedCallersKeepTheirOrder: a small paced caller waits behind a large one, so that the pace is
// shared by calls. The pace also reaches callers that came before it and wait for the room.
func TestPacedCallersKeepTheirOrder(t *testing.T) {
	inQueue(t, func(q *queuing) {
		q.comes("large", largeSize, true)
		q.pace(largeSize / 2)
		q.add(-roomSize, 0)
		q.goesOn("")
		q.comes("small", smallSize, true)
		q.goesOn("")
		q.comes("other", largeSize, false)
		q.goesOn("other")
		q.pace(2*largeSize + smallSize/2)
		q.goesOn("large")
		q.goesOn("")
		q.land(2*largeSize, 2*largeSize)
		q.goesOn("")
		q.pace(2*largeSize + smallSize)
		q.goesOn("small")
		q.comes("last", largeSize, true)
		q.goesOn("")
		q.unpace()
		if n := q.slowed(); n != 3 {
			t.Errorf("callers waited %d times", n)
		}
		q.goesOn("last")
	})
}

// TestARush lasts until its end, and two at once until the end of both.
func TestARush(t *testing.T) {
	inQueue(t, func(q *queuing) {
		q.add(-roomSize, 0)
		q.pace(1)
		q.comes("before", smallSize, true)
		q.goesOn("")
		q.rush(+1)
		q.goesOn("before")
		q.rush(+1)
		q.rush(-1)
		q.pace(2) // a tick
		q.comes("in it", smallSize, true)
		q.goesOn("in it")
		q.rush(-1)
		q.comes("after", smallSize, true)
		q.goesOn("")
		q.unpace()
		q.goesOn("after")
	})
}

// TestNoPacedCallerStarves: after a checkpoint it has its turn before those that come later.
func TestNoPacedCallerStarves(t *testing.T) {
	inQueue(t, func(q *queuing) {
		q.pace(1)
		q.comes("paced", largeSize, true)
		q.comes("before", largeSize, false)
		q.unpace()
		q.comes("later", largeSize, false)
		q.add(-roomSize, 0)
		if first, second := <-q.order, <-q.order; first == "later" || second == "later" {
			t.Errorf("%s and %s go on, want the others", first, second)
		}
		q.goesOn("")
		q.land(largeSize, largeSize)
		q.goesOn("later")
	})
}

// A small paced caller that waits for the room does not go before others once the log is too long.
func TestASmallPacedCallerHasNoLaneOfItsOwn(t *testing.T) {
	inQueue(t, func(q *queuing) {
		q.comes("first", largeSize, false)
		q.mu.bypassed = roomSize // by small callers: no more of them
		q.comes("small", smallSize, true)
		q.mu.bypassed = 0
		q.pace(smallSize / 2)
		q.goesOn("")
		q.add(-roomSize, 0)
		q.goesOn("first")
		q.unpace()
		q.goesOn("small")
	})
}

// TestThePaceFollowsTheLastCheckpoint: half of what may come comes in the time that it took.
func TestThePaceFollowsTheLastCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow(t, 3)
		time.Sleep(time.Minute)
		s.end <- nil
		<-s.began
		before := s.grown()
		time.Sleep(time.Second)
		if n := s.grown(); n > before+0.1 {
			t.Errorf("in a second the log has grown from %.2f to %.2f files", before, n)
		}
		time.Sleep(time.Minute)
		if n := s.grown(); n < before+0.3 || n > before+0.6 {
			t.Errorf("half-way the log has grown from %.2f to %.2f files, want half a file more",
				before, n)
		}
		s.finish(t, nil)
	})
}

// TestALogThatIsTooLong still takes some records during a checkpoint, as after a backup.
func TestALogThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = paceTo + 2
		s := slow(t, long)
		time.Sleep(paceTime)
		if n := s.grown(); n < long+0.4 || n > long+0.6 {
			t.Errorf("half-way the log has %.2f files, want half a file more than %d", n, long)
		}
		time.Sleep(time.Hour)
		if n := s.grown(); n < long+paceLeast-0.1 || n > long+paceLeast+0.1 {
			t.Errorf("in the end the log has %.2f files, want %d more than %d", n, paceLeast, long)
		}
		s.finish(t, nil)
	})
}
