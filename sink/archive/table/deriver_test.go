package table_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

// gate is a store: its Put waits, and it counts the puts of progress.
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

// lost is a store that loses its first answer.
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

// A commit with a lost answer is derived as any other.
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

// late is a store that answers for a missing link only after another writer has committed it.
type late struct {
	table.Store
	once sync.Once
	do   func()
}

func (l *late) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	from, err := l.Store.Get(ctx, name)
	if err != nil && strings.HasPrefix(name, "orders@") {
		l.once.Do(l.do)
	}
	return from, err
}

// A link that comes while All finds the tip is derived by an All that comes behind it.
func TestAllMeanwhile(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	var d *table.Deriver
	store := p.store
	l := &late{Store: store, do: func() {
		p.link(1)
		p.must(d.All(t.Context()))
	}}
	by := p.tableOn(l, table.Minute)
	d = by.Start(t.Context(), table.Options{})
	defer d.Close()
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	if got := d.Counts(); got.Links != 2 {
		t.Errorf("%+v", got)
	}
}

// Wait says that a Deriver was closed.
func TestWaitAfterClose(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	d := p.table(table.Minute).Start(t.Context(), table.Options{})
	d.Close()
	d.Take(p.tips[len(p.tips)-1])
	if err := d.Wait(t.Context()); !errors.Is(err, table.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	d.Close()
}

// A shard with a damaged or missing link ends there, whichever link it is, and the others go on.
func TestDamagedShards(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(p *place, links []string)
		want   archive.TableReport
	}{
		"the first link is damaged": {func(p *place, links []string) {
			p.must(os.Truncate(links[0], 10))
		}, archive.TableReport{Objects: 1, Records: 1}},
		"the first link is missing": {func(p *place, links []string) {
			p.must(os.Remove(links[0]))
		}, archive.TableReport{Objects: 1, Records: 1}},
		"a middle link is missing": {func(p *place, links []string) {
			p.must(os.Remove(links[1]))
		}, archive.TableReport{Objects: 2, Records: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.link(0)
			p.link(1)
			p.link(2)
			links, err := filepath.Glob(filepath.Join(p.dir, "orders@*", "*", "*.gz"))
			p.must(err)
			p.open("shardId-000000000001")
			p.linkOf("shardId-000000000001", 3)
			c.damage(p, links)
			by := p.table(table.Minute)
			d := by.Start(t.Context(), table.Options{})
			p.must(d.All(t.Context()))
			if err := d.Wait(t.Context()); !errors.Is(err, archive.ErrUnusableLink) {
				t.Errorf("deriving: %v", err)
			}
			d.Close()
			report := p.verify(by)
			if report.Objects != c.want.Objects || report.Broken.Count != 1 ||
				report.Foreign.Count+report.Missing.Count > 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

// If the folder of a table is removed under a Deriver, no progress leads.
func TestFolderGone(t *testing.T) {
	p := newPlace(t)
	by := p.table(table.Minute)
	d := by.Start(t.Context(), table.Options{Persist: true})
	defer d.Close()
	p.link(0)
	d.Take(p.tips[len(p.tips)-1])
	p.must(d.Wait(t.Context()))
	p.must(os.RemoveAll(filepath.Join(p.dir, "tables")))
	p.link(1)
	d.Take(p.tips[len(p.tips)-1])
	if err := d.Wait(t.Context()); !errors.Is(err, archive.ErrFolderGone) {
		t.Errorf("after the removal: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "tables", "by-time", "_progress")); err == nil {
		t.Error("there is a progress, and the objects before it are gone")
	}
}

// Archived records that Map has made large are compared as any others.
func TestLargeLine(t *testing.T) {
	p := newPlace(t)
	a, err := archive.New(archive.Config{
		Store: p.store, Map: func(_ context.Context, r *runnel.Record) (bool, error) {
			r.Data = bytes.Repeat([]byte{0xff}, 15<<20)
			return true, nil
		},
	})
	p.must(err)
	p.writer, err = a.Open(t.Context(), sink.Shard{
		Stream: "orders", Created: noon.Add(-time.Hour), ID: "shardId-000000000000",
	})
	p.must(err)
	p.link(0)
	by := p.table(table.Minute)
	p.derive(by)
	p.wantReport(by, archive.TableReport{Objects: 1, Records: 1})
}

// Many shards that begin in one folder do not remove each other's files.
func TestManyShards(t *testing.T) {
	p := newPlace(t)
	by := p.table(table.Day)
	for n := range 60 {
		id := runnel.ShardID(fmt.Sprintf("shardId-%012d", n))
		p.open(id)
		p.linkOf(id, float64(n))
	}
	d := by.Start(t.Context(), table.Options{Parallel: 8})
	defer d.Close()
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	p.wantReport(by, archive.TableReport{Objects: 60, Records: 60})
}

// Two links that come between a look for one and a listing are no damage.
func TestTwoLinksMeanwhile(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	l := &late{Store: p.store, do: func() {
		p.link(1)
		p.link(2)
	}}
	by := p.tableOn(l, table.Minute)
	d := by.Start(t.Context(), table.Options{})
	defer d.Close()
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	p.wantReport(by, archive.TableReport{Objects: 3, Records: 3})
}

// A commit that is taken while its shard's tip is looked for is derived.
func TestTakeMeanwhile(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	var d *table.Deriver
	l := &late{Store: p.store, do: func() {
		p.link(1)
		d.Take(p.tips[len(p.tips)-1])
	}}
	by := p.tableOn(l, table.Minute)
	d = by.Start(t.Context(), table.Options{})
	defer d.Close()
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	if got := d.Counts(); got.Links != 2 {
		t.Errorf("%+v", got)
	}
}

// With Again lost objects are derived anew, although the progress is behind them.
func TestAgain(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	p.link(1)
	by := p.table(table.Minute)
	p.derive(by)
	objects, err := filepath.Glob(filepath.Join(p.dir, "tables", "by-time", "2020", "*", "*", "*", "*", "*"))
	p.must(err)
	p.must(os.Remove(objects[0]))
	d := by.Start(t.Context(), table.Options{Again: true})
	defer d.Close()
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	p.wantReport(by, archive.TableReport{Objects: 2, Records: 2})
}
