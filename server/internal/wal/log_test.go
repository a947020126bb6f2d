package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is a machine that remembers every frame's number: the first 8 bytes of its payload.
type journal struct {
	mu       sync.Mutex
	entries  []uint64 // in the order of Append
	lsns     []LSN
	visible  int // how many are durable
	replayed int
	restored int
	finish   func(ctx context.Context) error // in the way of a snapshot, if not nil
}

func (j *journal) Restore(snapshot []byte) error {
	if len(snapshot)%16 != 0 {
		return fmt.Errorf("a snapshot of %d bytes", len(snapshot))
	}
	for p := snapshot; len(p) > 0; p = p[16:] {
		j.entries = append(j.entries, binary.LittleEndian.Uint64(p))
		j.lsns = append(j.lsns, LSN(binary.LittleEndian.Uint64(p[8:])))
	}
	j.restored = len(j.entries)
	j.visible = len(j.entries)
	return nil
}

func (j *journal) Replay(at LSN, payload []byte) error {
	id, err := checkPayload(payload)
	if err != nil {
		return err
	}
	if n := len(j.lsns); n > 0 && j.lsns[n-1] >= at {
		return fmt.Errorf("replay at %d after %d", at, j.lsns[n-1])
	}
	j.entries, j.lsns = append(j.entries, id), append(j.lsns, at)
	j.replayed++
	j.visible = len(j.entries)
	return nil
}

func (j *journal) Freeze() func(ctx context.Context) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries, lsns := j.entries[:len(j.entries):len(j.entries)], j.lsns
	return func(ctx context.Context) ([]byte, error) {
		j.mu.Lock()
		finish := j.finish
		j.mu.Unlock()
		if finish != nil {
			if err := finish(ctx); err != nil {
				return nil, err
			}
		}
		var p []byte
		for i, id := range entries {
			p = binary.LittleEndian.AppendUint64(p, id)
			p = binary.LittleEndian.AppendUint64(p, uint64(lsns[i]))
		}
		return p, nil
	}
}

// before sets finish while the log runs.
func (j *journal) before(finish func(ctx context.Context) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.finish = finish
}

// payload makes a payload of at least 8 bytes that shows whether it is whole.
func payload(id uint64, size int) []byte {
	p := binary.LittleEndian.AppendUint64(nil, id)
	for i := 8; i < size; i++ {
		p = append(p, byte(id*31+uint64(i)*7))
	}
	return p
}

func checkPayload(p []byte) (uint64, error) {
	if len(p) < 8 {
		return 0, fmt.Errorf("a payload of %d bytes", len(p))
	}
	id := binary.LittleEndian.Uint64(p)
	if !slices.Equal(p, payload(id, len(p))) {
		return 0, fmt.Errorf("payload %d is damaged", id)
	}
	return id, nil
}

// bundle is a running log with a journal.
type bundle struct {
	*Log
	journal *journal
}

func config(fs vfs.FS) Config {
	return Config{
		FS: fs, Dir: "data", FileSize: 16 << 10, MaxPending: 64 << 10,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// launch opens and starts a log. The test must close it.
func launch(ctx context.Context, cfg Config) (*bundle, error) {
	log, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	b := &bundle{Log: log, journal: &journal{}}
	log.Register(KindRecords, b.journal)
	if err := log.Start(ctx); err != nil {
		return nil, errors.Join(err, log.Close(ctx))
	}
	return b, nil
}

func start(t *testing.T, cfg Config) *bundle {
	t.Helper()
	b, err := launch(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) stop(t *testing.T) {
	t.Helper()
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// put appends a frame and returns the LSN of its end.
func (b *bundle) put(ctx context.Context, id uint64, size int) (LSN, error) {
	var lsn LSN
	err := b.Sequence(ctx, frameSize(size), func(tx *Tx) {
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		lsn = tx.Append(KindRecords, payload(id, size), func() {
			b.journal.mu.Lock()
			defer b.journal.mu.Unlock()
			b.journal.visible++
		})
		b.journal.entries = append(b.journal.entries, id)
		b.journal.lsns = append(b.journal.lsns, lsn)
	})
	return lsn, err
}

// commit appends frames, and waits for them.
func (b *bundle) commit(t *testing.T, size int, ids ...uint64) {
	t.Helper()
	for _, id := range ids {
		lsn, err := b.put(t.Context(), id, size)
		if err == nil {
			err = b.Wait(t.Context(), lsn)
		}
		if err != nil {
			t.Fatalf("frame %d: %v", id, err)
		}
	}
}

func (b *bundle) want(t *testing.T, ids ...uint64) {
	t.Helper()
	b.journal.mu.Lock()
	defer b.journal.mu.Unlock()
	if !slices.Equal(b.journal.entries, ids) {
		t.Fatalf("the journal has %v, want %v", b.journal.entries, ids)
	}
}

func upTo(n uint64) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = uint64(i)
	}
	return ids
}

func TestFramesSurviveARestart(t *testing.T) {
	fs := vfs.NewCrashable()
	b := start(t, config(fs))
	b.commit(t, 100, upTo(10)...)
	end := b.Durable()
	if end != 10*LSN(frameSize(100)) {
		t.Errorf("Durable = %d", end)
	}
	b.stop(t)

	b = start(t, config(fs))
	b.want(t, upTo(10)...)
	if b.journal.replayed != 0 || b.journal.restored != 10 {
		t.Errorf("after a clean Close %d replayed, %d restored",
			b.journal.replayed, b.journal.restored)
	}
	if b.Durable() != end {
		t.Errorf("Durable = %d, before %d", b.Durable(), end)
	}
	b.commit(t, 100, 10, 11)
	b.want(t, upTo(12)...)
	b.stop(t)
}

// silent is a machine that keeps nothing.
type silent struct{}

func (*silent) Restore([]byte) error     { return nil }
func (*silent) Replay(LSN, []byte) error { return nil }
func (*silent) Freeze() func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return nil, nil }
}
