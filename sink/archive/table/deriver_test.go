package table_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

// gate is a store whose Put waits, and which counts the puts of progress.
type gate struct {
	table.Store
	entered  chan struct{}
	pass     chan struct{} // closed to let all pass
	progress atomic.Int64
}

func (g *gate) Put(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, "_progress") {
		g.progress.Add(1)
	}
	select {
	case g.entered <- struct{}{}:
	default:
	}
	<-g.pass
	return g.Store.Put(ctx, name, data)
}

// A commit that comes while its shard is under way is derived before Wait returns.
func TestCommitMeanwhile(t *testing.T) {
	p := newPlace(t)
	g := &gate{Store: p.store, entered: make(chan struct{}, 1), pass: make(chan struct{})}
	p.store = g
	by := p.table(table.Minute)
	d := by.Start(t.Context(), table.Options{})
	defer d.Close()
	p.link(0)
	d.Take(p.tips[len(p.tips)-1])
	<-g.entered
	p.link(1)
	d.Take(p.tips[len(p.tips)-1])
	close(g.pass)
	p.must(d.Wait(t.Context()))
	if got := d.Counts(); got != (table.Counts{Links: 2, Records: 2}) {
		t.Errorf("%+v", got)
	}
}

// Memory that derived commits have taken is free for others, and the progress is not written for
// each link of many.
func TestMemoryIsFreed(t *testing.T) {
	p := newPlace(t)
	g := &gate{Store: p.store, pass: make(chan struct{})}
	close(g.pass)
	p.store = g
	by := p.table(table.Hour)
	p.link(0)
	size := p.tips[len(p.tips)-1].Stored.Size()
	d := by.Start(t.Context(), table.Options{MaxHeld: 2 * size})
	defer d.Close()
	for n := range 40 {
		d.Take(p.tips[len(p.tips)-1])
		p.must(d.Wait(t.Context()))
		p.link(float64(n))
	}
	if got := d.Counts(); got != (table.Counts{Links: 40, Records: 40}) {
		t.Errorf("%+v", got)
	}
	p.must(os.RemoveAll(filepath.Join(p.dir, "tables")))
	store, err := archive.NewDirStore(p.dir)
	p.must(err)
	g.Store = store
	g.progress.Store(0)
	p.derive(p.table(table.Hour))
	if n := g.progress.Load(); n != 3 {
		t.Errorf("41 links had %d writes of progress, want 3", n)
	}
}

// A worker that goes on behind another one's links reads those from the archive, and derives its
// own commit from memory. A tip of another stream is none of the table.
func TestBehindOthers(t *testing.T) {
	p := newPlace(t)
	by := p.table(table.Minute)
	p.link(0)
	p.link(1)
	d := by.Start(t.Context(), table.Options{})
	defer d.Close()
	foreign := p.tips[1] // behind that of the opening
	foreign.Stream.Name = "clicks"
	d.Take(foreign)
	p.must(d.Wait(t.Context()))
	d.Take(p.tips[len(p.tips)-1])
	p.must(d.Wait(t.Context()))
	if got := d.Counts(); got != (table.Counts{Links: 2, Records: 2, Read: 1}) {
		t.Errorf("%+v", got)
	}
}

// The remains of a crash in a folder are removed by the next program that derives its link.
func TestSweep(t *testing.T) {
	p := newPlace(t)
	by := p.table(table.Minute)
	p.link(0)
	folder := filepath.Join(p.dir, "tables", "by-time", "2020", "02", "02", "12", "00")
	p.must(os.MkdirAll(folder, 0o700))
	remains := filepath.Join(folder, ".x.ndjson.gz.ABC.tmp")
	p.must(os.WriteFile(remains, nil, 0o600))
	p.derive(by)
	if _, err := os.Stat(remains); err == nil {
		t.Error("a temporary file is left")
	}
}

// lost is a store whose first answer is lost.
type lost struct {
	table.Store
	calls int
}

func (l *lost) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	err := l.Store.PutIfAbsent(ctx, name, data)
	if l.calls++; l.calls == 1 {
		return fmt.Errorf("%w: no answer", archive.ErrStoreUnavailable)
	}
	return err
}

// A commit whose answer was lost is derived as any other.
func TestLostAnswer(t *testing.T) {
	p := newPlace(t)
	by := p.table(table.Minute)
	p.store = &lost{Store: p.store}
	p.open("shardId-000000000000")
	p.link(0)
	d := by.Start(t.Context(), table.Options{})
	defer d.Close()
	d.Take(p.tips[len(p.tips)-1])
	p.must(d.Wait(t.Context()))
	if got := d.Counts(); got != (table.Counts{Links: 1, Records: 1}) {
		t.Errorf("%+v", got)
	}
}
