package shardlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak multiplies the sizes of the random tests: RUNNEL_SOAK, default 1.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// engine is a log, a store, and a minimal catalogue.
type engine struct {
	log   *wal.Log
	store *Store
	cat   *catalogue
}

// setup is how an engine is opened. The zero values are the small sizes of tests.
type setup struct {
	fs          vfs.FS
	segmentSize int64
	fileSize    int64
	maxPending  int64
	openFiles   int
	places      int
	maxReplay   int
	delay       time.Duration
	now         func() time.Time
	skipDamaged bool
	interval    time.Duration // between syncs; 0: before every acknowledgement
	logger      *slog.Logger  // default: none
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// open opens an engine. If it fails, nothing stays open.
func (c setup) open(ctx context.Context) (*engine, error) {
	logger := or(c.logger, slog.New(slog.DiscardHandler))
	log, err := wal.Open(wal.Config{
		FS: c.fs, Dir: "data", FileSize: or(c.fileSize, 64<<10),
		MaxPending: or(c.maxPending, 1<<20), SyncInterval: c.interval, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	now := c.now
	if now == nil {
		now = time.Now
	}
	store, err := New(Config{
		Log: log, FS: c.fs, Dir: "data", SegmentSize: or(c.segmentSize, 4<<10),
		OpenFiles: c.openFiles, IndexEntries: c.places, DrainDelay: c.delay,
		MaxReplay: c.maxReplay, SkipDamaged: c.skipDamaged, Now: now, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, log.Close(ctx))
	}
	e := &engine{log: log, store: store, cat: &catalogue{store: store}}
	log.Register(wal.KindCatalogue, e.cat)
	if err = log.Start(ctx); err == nil {
		err = store.Begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close(ctx), store.Close())
	}
	return e, nil
}

func (c setup) mustOpen(t testing.TB) *engine {
	t.Helper()
	e, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *engine) close(ctx context.Context) error {
	return errors.Join(e.log.Close(ctx), e.store.Close())
}

func (e *engine) mustClose(t testing.TB) {
	t.Helper()
	if err := e.close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// shut ends an engine whose disk may have failed.
func (e *engine) shut(t testing.TB) {
	_ = e.close(context.WithoutCancel(t.Context()))
}

// catalogue logs the shards that exist. Its snapshot is empty: the store has its own.
type catalogue struct {
	mu    sync.Mutex
	store *Store
}

const (
	opCreate = 'c'
	opSeal   = 's'
	opDelete = 'd'
)

func (c *catalogue) Restore([]byte) error { return nil }

func (c *catalogue) Replay(_ wal.LSN, payload []byte) error {
	c.apply(payload[0], ID(binary.LittleEndian.Uint64(payload[1:])))()
	return nil
}

func (c *catalogue) Freeze() func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte{}, nil }
}

func (c *catalogue) apply(op byte, id ID) (published func()) {
	switch op {
	case opSeal:
		return c.store.Seal(id)
	case opDelete:
		return c.store.Delete(id)
	default:
		c.store.Create(id)
		return func() {}
	}
}

// do logs a change of the catalogue and waits until it is durable.
func (e *engine) do(ctx context.Context, op byte, id ID) error {
	payload := binary.LittleEndian.AppendUint64([]byte{op}, uint64(id))
	var lsn wal.LSN
	err := e.log.Sequence(ctx, len(payload), func(tx *wal.Tx) {
		e.cat.mu.Lock()
		defer e.cat.mu.Unlock()
		lsn = tx.Append(wal.KindCatalogue, payload, e.cat.apply(op, id))
	})
	if err != nil {
		return err
	}
	return e.log.Wait(ctx, lsn)
}

// sequence appends without waiting.
func (e *engine) sequence(ctx context.Context, id ID, entries []Entry) ([]Number, wal.LSN, error) {
	var numbers []Number
	var lsn wal.LSN
	var failed error
	err := e.log.Sequence(ctx, BatchSize(entries), func(tx *wal.Tx) {
		e.cat.mu.Lock()
		defer e.cat.mu.Unlock()
		sh := e.store.Shard(id)
		if sh == nil {
			failed = ErrDeleted
			return
		}
		numbers, lsn, failed = sh.Append(tx, entries)
	})
	return numbers, lsn, errors.Join(err, failed)
}

func (e *engine) append(ctx context.Context, id ID, entries ...Entry) ([]Number, error) {
	numbers, lsn, err := e.sequence(ctx, id, entries)
	if err != nil {
		return nil, err
	}
	return numbers, e.log.Wait(ctx, lsn)
}

// drained waits until everything that was appended is in segments.
func (e *engine) drained(t testing.TB) {
	t.Helper()
	err := e.store.drain.drainedBy(t.Context(), func() bool {
		for _, sh := range e.store.all() {
			if _, next := sh.Bounds(); !sh.drainedTo(next) {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

// entry makes the entry of a record that says where it belongs.
func entry(id ID, n int, size int) Entry {
	data := fmt.Appendf(nil, "%d/%d:", id, n)
	data = append(data, bytes.Repeat([]byte{byte('a' + n%26)}, max(0, size-len(data)))...)
	return Entry{PartitionKey: fmt.Sprintf("key-%d-%d", id, n), Data: data}
}

// entries makes count of them, from n on.
func entries(id ID, n, count, size int) []Entry {
	list := make([]Entry, count)
	for i := range list {
		list[i] = entry(id, n+i, size)
	}
	return list
}

// readAll reads a shard from its oldest record to its end, in small pieces.
func readAll(ctx context.Context, sh *Shard) ([]Record, error) {
	var all []Record
	from, next := sh.Bounds()
	for from < next {
		got, err := sh.Read(ctx, from, 7, 3000)
		if err != nil {
			return all, err
		}
		if len(got) == 0 {
			return all, fmt.Errorf("no record at %d of %d", from, next)
		}
		all = append(all, got...)
		from = got[len(got)-1].Index + 1
	}
	return all, nil
}

// clock is a time that tests set.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }
