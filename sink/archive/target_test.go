package archive_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// target is an archive in memory, with faults on request.
type target struct {
	mu         sync.Mutex
	rng        *rand.Rand
	mem        *vfs.Mem
	open       func() archive.Store
	faults     bool
	breakStore func(archive.Store) archive.Store
	lie        vfs.OpKind // an operation that does nothing and reports success
	now        time.Time
	late       []func()
}

func newTarget(seed uint64, mem *vfs.Mem) *target {
	d := &target{rng: rand.New(rand.NewPCG(seed, 7)), mem: mem, now: time.UnixMilli(1e12)}
	d.open = func() archive.Store {
		var fsys vfs.FS = d.mem
		if d.lie != "" {
			fsys = lying{d.mem, d.lie}
		}
		if d.faults { // the state between two operations is seen by the others, and by a crash
			fsys = vfs.Inject(fsys, func(op vfs.Op) error {
				if op.Kind.Changes() && d.rng.IntN(80) == 0 {
					return errInjected
				}
				return nil
			})
		}
		return archive.NewDirStoreOn(fsys, "data/to")
	}
	return d
}

func (d *target) NewSink() (sink.Sink, error) {
	store := d.open()
	if d.breakStore != nil {
		store = d.breakStore(store)
	}
	if d.faults {
		store = &flaky{store, d}
	}
	d.mu.Lock() // the clock draws from it as well
	size, every := int64(1+d.rng.IntN(3000)), time.Duration(1+d.rng.IntN(60))*time.Second
	whole := 1 + d.rng.IntN(6)
	d.mu.Unlock()
	a, err := archive.New(archive.Config{
		Store: store, Size: size, WriterID: "one name for all", Every: every, Whole: whole,
	})
	if err != nil {
		return nil, err
	}
	a.SetClock(d.tick)
	return a, nil
}

func (d *target) tick() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(time.Duration(d.rng.IntN(4000)) * time.Millisecond)
	return d.now
}

// Gaps implements sinktest.Gapper.
func (d *target) Gaps(ctx context.Context, shard sink.Shard) ([]sink.Gap, error) {
	chain := archive.Chain{
		Stream: archive.Stream{Name: shard.Stream, Created: shard.Created}, ShardID: shard.ID,
	}
	var gaps []sink.Gap
	for link, err := range archive.NewReader(d.open()).Links(ctx, chain) {
		if err != nil {
			return nil, err
		}
		if link.Gap != nil {
			gaps = append(gaps, *link.Gap)
		}
	}
	return gaps, nil
}

func (d *target) Records(ctx context.Context, shard sink.Shard) ([]runnel.Record, error) {
	d.faults = false
	d.arrive()
	reader := archive.NewReader(d.open())
	chain := archive.Chain{
		Stream: archive.Stream{Name: shard.Stream, Created: shard.Created}, ShardID: shard.ID,
	}
	var records []runnel.Record
	for record, err := range reader.Records(ctx, chain) {
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func (d *target) arrive() {
	for _, put := range d.late {
		put()
	}
	d.late = nil
}

// crashing is a target that can lose power.
type crashing struct{ *target }

func (c crashing) Crash() error {
	c.late = nil
	c.mem = c.mem.Crash(c.rng)
	return nil
}

// flaky is a store that loses answers and delays puts.
type flaky struct {
	archive.Store
	target *target
}

func (f *flaky) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	d := f.target
	if len(d.late) > 0 && d.rng.IntN(3) == 0 {
		d.arrive()
	}
	data = append([]byte(nil), data...)
	switch d.rng.IntN(16) {
	case 0: // refused
		return errInjected
	case 1: // the answer is lost
		_ = f.Store.PutIfAbsent(ctx, name, data)
		return errInjected
	case 2: // the answer is lost, and a retry below finds the object
		if err := f.Store.PutIfAbsent(ctx, name, data); err != nil {
			return err
		}
		return archive.ErrObjectExists
	case 3: // it comes later
		d.late = append(d.late, func() {
			_ = f.Store.PutIfAbsent(context.WithoutCancel(ctx), name, data)
		})
		return errInjected
	}
	return f.Store.PutIfAbsent(ctx, name, data)
}

// replaces returns a store that ignores the condition.
func (d *target) replaces(store archive.Store) archive.Store { return replacing{store, d} }

type replacing struct {
	archive.Store
	target *target
}

func (r replacing) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	_ = r.target.mem.Remove("data/to/" + name)
	return r.Store.PutIfAbsent(ctx, name, data)
}

// claims returns a store that reports no error if the object exists.
func claims(store archive.Store) archive.Store { return claiming{store} }

type claiming struct{ archive.Store }

func (c claiming) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := c.Store.PutIfAbsent(ctx, name, data); !errors.Is(err, archive.ErrObjectExists) {
		return err
	}
	return nil
}

// lying is a file system on which one operation does nothing.
type lying struct {
	vfs.FS
	about vfs.OpKind
}

func (l lying) SyncDir(name string) error {
	if l.about == vfs.OpSyncDir {
		return nil
	}
	return l.FS.SyncDir(name)
}

func (l lying) Create(name string) (vfs.File, error) {
	file, err := l.FS.Create(name)
	if l.about != vfs.OpSync || err != nil {
		return file, err
	}
	return lyingFile{file}, nil
}

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error { return nil }
