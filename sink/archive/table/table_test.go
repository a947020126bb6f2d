package table_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

var noon = time.Date(2020, 2, 2, 12, 0, 0, 0, time.UTC)

// place is an archive in a folder, with a writer of one shard, and its table.
type place struct {
	t      *testing.T
	dir    string
	store  table.Store
	writer sink.Writer
	next   int // the number of the next record
	tips   []archive.Tip
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	store, err := archive.NewDirStore(p.dir)
	p.must(err)
	p.store = store
	p.open("shardId-000000000000")
	return p
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) open(id runnel.ShardID) {
	p.t.Helper()
	a, err := archive.New(archive.Config{
		Store: p.store, OnTip: func(tip archive.Tip) { p.tips = append(p.tips, tip) },
	})
	p.must(err)
	p.writer, err = a.Open(p.t.Context(), sink.Shard{
		Stream: "orders", Created: noon.Add(-time.Hour), ID: id,
	})
	p.must(err)
}

// link commits a link with a record for each arrival, in minutes after noon.
func (p *place) link(minutes ...float64) {
	p.t.Helper()
	p.linkOf("shardId-000000000000", minutes...)
}

func (p *place) linkOf(id runnel.ShardID, minutes ...float64) {
	p.t.Helper()
	var batch sink.Batch
	for _, m := range minutes {
		p.next++
		batch.Through = runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(100 + p.next))}
		batch.Records = append(batch.Records, runnel.Record{
			PartitionKey: "k", Data: fmt.Appendf(nil, `{"n":%d}`, p.next),
			ShardID: id, Position: batch.Through,
			ArrivalTime: noon.Add(time.Duration(m * float64(time.Minute))),
		})
	}
	_, err := p.writer.Write(p.t.Context(), batch)
	p.must(err)
	_, err = p.writer.Flush(p.t.Context())
	p.must(err)
}

func (p *place) table(layout table.Layout) *table.Table {
	p.t.Helper()
	return p.tableOn(p.store, layout)
}

func (p *place) tableOn(store table.Store, layout table.Layout) *table.Table {
	p.t.Helper()
	t, err := table.Open(p.t.Context(), table.Config{
		Store: store, Name: "by-time", Layout: layout, Stream: "orders",
	})
	p.must(err)
	return t
}

// derive derives the whole archive.
func (p *place) derive(t *table.Table) {
	p.t.Helper()
	d := t.Start(p.t.Context(), table.Options{})
	defer d.Close()
	p.must(d.All(p.t.Context()))
	p.must(d.Wait(p.t.Context()))
}

// listed returns the numbers of the records by folder, as a program sees them that knows nothing of
// runnel.
func (p *place) listed() map[string][]int {
	p.t.Helper()
	got, root := map[string][]int{}, filepath.Join(p.dir, "tables", "by-time")
	p.must(filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".ndjson.gz") {
			return err
		}
		file, err := os.Open(name)
		p.must(err)
		defer file.Close()
		unzipped, err := gzip.NewReader(file)
		p.must(err)
		folder, err := filepath.Rel(root, filepath.Dir(name))
		p.must(err)
		for lines := json.NewDecoder(unzipped); lines.More(); {
			var record struct{ Data struct{ N int } }
			p.must(lines.Decode(&record))
			got[folder] = append(got[folder], record.Data.N)
		}
		return nil
	}))
	return got
}

func (p *place) wantListed(want map[string][]int) {
	p.t.Helper()
	if got := p.listed(); fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("listed: %v, want %v", got, want)
	}
}

// verify returns the report of a comparison.
func (p *place) verify(t *table.Table) *archive.TableReport {
	p.t.Helper()
	report, err := t.Verify(p.t.Context(), 10)
	p.must(err)
	return report
}

func (p *place) wantReport(t *table.Table, want archive.TableReport) {
	p.t.Helper()
	got := p.verify(t)
	if got.Objects != want.Objects || got.Records != want.Records ||
		got.Missing.Count != want.Missing.Count || got.Differ.Count != want.Differ.Count ||
		got.Foreign.Count != want.Foreign.Count || got.Pending.Count != want.Pending.Count {
		p.t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

// Each record is in the folder of its minute, its hour or its day, also one that came late.
func TestLayouts(t *testing.T) {
	for layout, want := range map[table.Layout]map[string][]int{
		table.Minute: {
			"2020/02/02/12/00": {1, 2, 4}, "2020/02/02/12/01": {3, 5}, "2020/02/02/13/00": {6},
			"2020/02/03/00/00": {7},
		},
		table.Hour: {
			"2020/02/02/12": {1, 2, 3, 4, 5}, "2020/02/02/13": {6}, "2020/02/03/00": {7},
		},
		table.Day: {"2020/02/02": {1, 2, 3, 4, 5, 6}, "2020/02/03": {7}},
	} {
		t.Run(string(layout), func(t *testing.T) {
			p := newPlace(t)
			p.link(0, 0.5, 1, 0.9, 1.5)
			p.link(60, 720)
			by := p.table(layout)
			p.derive(by)
			p.wantListed(want)
			// Two links have records of one day, and so two objects.
			objects := max(3, int64(len(want)))
			p.wantReport(by, archive.TableReport{Objects: objects, Records: 7})
		})
	}
}

// Commits are derived from memory; with no room for them, and behind a restart, from the archive.
func TestFollowsTheWriter(t *testing.T) {
	for name, c := range map[string]struct {
		held int
		read int64
	}{
		"from memory": {0, 0}, "without room": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			by := p.table(table.Minute)
			d := by.Start(t.Context(), table.Options{MaxHeld: c.held})
			p.link(0, 1)
			p.link(1, 2)
			for _, tip := range p.tips {
				d.Take(tip)
			}
			p.must(d.Wait(t.Context()))
			d.Close()
			want := table.Counts{Links: 2, Records: 4, Read: c.read}
			if got := d.Counts(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			p.tips = nil
			p.link(3)
			p.open("shardId-000000000000") // a successor, which has not made that commit
			d = by.Start(t.Context(), table.Options{})
			d.Take(p.tips[len(p.tips)-1])
			p.must(d.Wait(t.Context()))
			d.Close()
			if got := d.Counts(); got != (table.Counts{Links: 1, Records: 1, Read: 1}) {
				t.Errorf("the successor: %+v", got)
			}
			p.wantReport(by, archive.TableReport{Objects: 5, Records: 5})
		})
	}
}

// Two programs that derive one archive write the same bytes.
func TestSameBytes(t *testing.T) {
	p := newPlace(t)
	p.link(0, 0.5, 1, 0.9, 1.5)
	read := func() string {
		text := ""
		p.must(filepath.WalkDir(filepath.Join(p.dir, "tables"),
			func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					data, err := os.ReadFile(name)
					p.must(err)
					text += fmt.Sprintf("%s %x\n", name, data)
				}
				return err
			}))
		return text
	}
	p.derive(p.table(table.Minute))
	first := read()
	p.must(os.RemoveAll(filepath.Join(p.dir, "tables")))
	store, err := archive.NewDirStore(p.dir)
	p.must(err)
	p.store = store
	p.derive(p.table(table.Minute))
	if second := read(); first != second {
		t.Errorf("first:\n%ssecond:\n%s", first, second)
	}
}

// The first use fixes the layout and the stream.
func TestFixed(t *testing.T) {
	p := newPlace(t)
	open := func(cfg table.Config) error {
		cfg.Store = p.store
		_, err := table.Open(t.Context(), cfg)
		return err
	}
	if err := open(table.Config{Name: "x"}); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("no such table: %v", err)
	}
	p.must(open(table.Config{Name: "x", Layout: table.Hour, Stream: "orders"}))
	p.must(open(table.Config{Name: "x", Layout: table.Hour, Stream: "orders"}))
	p.must(open(table.Config{Name: "x"}))
	err := open(table.Config{Name: "x", Layout: table.Day, Stream: "orders"})
	if !errors.Is(err, table.ErrOther) || !strings.Contains(err.Error(), "hour") ||
		!strings.Contains(err.Error(), "day") {
		t.Errorf("another layout: %v", err)
	}
	if err := open(table.Config{Name: "x", Stream: "clicks"}); !errors.Is(err, table.ErrOther) {
		t.Errorf("another stream: %v", err)
	}
	for _, name := range []string{"", "..", "a/b", "-x", strings.Repeat("x", 129)} {
		err := open(table.Config{Name: name, Layout: table.Day, Stream: "orders"})
		if !errors.Is(err, table.ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	p.must(os.WriteFile(filepath.Join(p.dir, "tables", "x", "_layout.json"), []byte("{"), 0o600))
	if err := open(table.Config{Name: "x"}); !errors.Is(err, table.ErrDamaged) {
		t.Errorf("a damaged layout: %v", err)
	}
}

// A verification names each object that is removed, changed, moved or foreign.
func TestVerify(t *testing.T) {
	object := "2020/02/02/12/00/1580641200000-shardId-000000000000-001-0-0000000000.ndjson.gz"
	for name, c := range map[string]struct {
		change func(p *place, root string)
		want   archive.TableReport
	}{
		"nothing": {
			func(*place, string) {}, archive.TableReport{Objects: 3, Records: 4},
		},
		"an object is removed": {
			func(p *place, root string) { p.must(os.Remove(filepath.Join(root, object))) },
			archive.TableReport{Objects: 2, Records: 3, Missing: archive.Finding{Count: 1}},
		},
		"an object has other records": {
			func(p *place, root string) {
				var packed strings.Builder
				to := gzip.NewWriter(&packed)
				_, err := to.Write([]byte("{}\n"))
				p.must(errors.Join(err, to.Close()))
				p.must(os.WriteFile(filepath.Join(root, object), []byte(packed.String()), 0o600))
			},
			archive.TableReport{Objects: 2, Records: 3, Differ: archive.Finding{Count: 1}},
		},
		"an object is damaged": {
			func(p *place, root string) {
				p.must(os.Truncate(filepath.Join(root, object), 20))
			},
			archive.TableReport{Objects: 2, Records: 3, Differ: archive.Finding{Count: 1}},
		},
		"a folder is in the place of an object": {
			func(p *place, root string) {
				p.must(os.Remove(filepath.Join(root, object)))
				p.must(os.Mkdir(filepath.Join(root, object), 0o700))
			},
			archive.TableReport{Objects: 2, Records: 3, Differ: archive.Finding{Count: 1}},
		},
		"an object is in another minute, too": {
			func(p *place, root string) {
				data, err := os.ReadFile(filepath.Join(root, object))
				p.must(err)
				p.must(os.WriteFile(filepath.Join(root, strings.Replace(object, "12/00", "12/02", 1)),
					data, 0o600))
			},
			archive.TableReport{Objects: 3, Records: 4, Foreign: archive.Finding{Count: 1}},
		},
		"foreign files": {
			func(p *place, root string) {
				for _, name := range []string{
					"x.ndjson.gz", "2020/x", "2020/02/02/12/00/x.ndjson.gz",
					"2020/02/02/12/00/1-shardId-000000000000-001-0-0000000000.ndjson.gz",
					"2020/02/02/12/00/1580641200000-shardId-000000000000-003-999-0000000000.ndjson.gz",
				} {
					p.must(os.WriteFile(filepath.Join(root, name), nil, 0o600))
				}
				p.must(os.MkdirAll(filepath.Join(root, "2020/02/02/12/00/x"), 0o700))
				for _, name := range []string{"_progress/x.ndjson.gz", "_progress/y/z"} {
					p.must(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
					p.must(os.WriteFile(filepath.Join(root, name), nil, 0o600))
				}
			},
			archive.TableReport{Objects: 3, Records: 4, Foreign: archive.Finding{Count: 8}},
		},
		"the progress is ahead": {
			func(p *place, root string) {
				file := filepath.Join(root, "_progress", "1580641200000-shardId-000000000000.json")
				p.must(os.WriteFile(file, []byte(`{"end":"end"}`), 0o600))
			},
			archive.TableReport{Objects: 3, Records: 4, Foreign: archive.Finding{Count: 1}},
		},
		"the progress lags": {
			func(p *place, root string) { p.must(os.RemoveAll(filepath.Join(root, "_progress"))) },
			archive.TableReport{Objects: 3, Records: 4},
		},
		"nothing is derived": {
			func(p *place, root string) {
				p.must(os.RemoveAll(filepath.Join(root, "_progress")))
				p.must(os.RemoveAll(filepath.Join(root, "2020")))
			},
			archive.TableReport{Pending: archive.Finding{Count: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.link(0, 1)
			p.link(2, 2)
			by := p.table(table.Minute)
			p.derive(by)
			c.change(p, filepath.Join(p.dir, "tables", "by-time"))
			p.wantReport(by, c.want)
		})
	}
}

// failing is a store that fails its n-th write, after its effect or before.
type failing struct {
	table.Store
	left  atomic.Int64
	after bool
}

var errCrash = errors.New("crash")

func (f *failing) Put(ctx context.Context, name string, data []byte) error {
	if f.left.Add(-1) < 0 {
		if f.after {
			_ = f.Store.Put(ctx, name, data)
		}
		return errCrash
	}
	return f.Store.Put(ctx, name, data)
}

// A deriving that ends at any write never leaves a progress that leads, and the next one completes
// the table.
func TestEndsAnywhere(t *testing.T) {
	for n := range int64(8) {
		for _, after := range []bool{false, true} {
			p := newPlace(t)
			p.link(0, 1)
			p.link(1, 2, 3)
			f := &failing{Store: p.store, after: after}
			f.left.Store(n)
			by := p.tableOn(f, table.Minute)
			d := by.Start(t.Context(), table.Options{})
			p.must(d.All(t.Context()))
			err := d.Wait(t.Context())
			d.Close()
			if n < 6 && !errors.Is(err, errCrash) {
				t.Fatalf("write %d failed, and the deriving said %v", n, err)
			}
			if got := p.verify(by); got.Missing.Count+got.Differ.Count+got.Foreign.Count > 0 {
				t.Errorf("write %d failed: %+v", n, got)
			}
			p.derive(p.table(table.Minute))
			p.wantReport(by, archive.TableReport{Objects: 5, Records: 5})
		}
	}
}

// gone is a store that cannot be reached for some calls.
type gone struct {
	table.Store
	calls atomic.Int64
}

func (g *gone) Put(ctx context.Context, name string, data []byte) error {
	if g.calls.Add(1)%2 == 1 {
		return fmt.Errorf("%w: no route", archive.ErrStoreUnavailable)
	}
	return g.Store.Put(ctx, name, data)
}

// An outage is waited out. A damaged link ends its shard, and no other.
func TestFailures(t *testing.T) {
	p := newPlace(t)
	p.link(0)
	p.store = &gone{Store: p.store}
	by := p.table(table.Minute)
	outages := 0
	var mu sync.Mutex
	d := by.Start(t.Context(), table.Options{OnOutage: func(error) {
		mu.Lock()
		defer mu.Unlock()
		outages++
	}})
	p.must(d.All(t.Context()))
	p.must(d.Wait(t.Context()))
	d.Close()
	if outages != 2 {
		t.Errorf("%d outages", outages)
	}
	p.wantReport(by, archive.TableReport{Objects: 1, Records: 1})

	p.link(1)
	p.link(2)
	links, err := filepath.Glob(filepath.Join(p.dir, "orders@*", "*", "*"))
	p.must(err)
	slices.Sort(links)
	p.must(os.Truncate(links[1], 50))
	var failed []runnel.ShardID
	d = by.Start(t.Context(), table.Options{OnFailure: func(id runnel.ShardID, _ error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, id)
	}})
	p.must(d.All(t.Context()))
	if err := d.Wait(t.Context()); !errors.Is(err, archive.ErrUnusableLink) {
		t.Errorf("a damaged link: %v", err)
	}
	d.Close()
	if len(failed) != 1 {
		t.Errorf("failed: %v", failed)
	}
}
