package archive_test

import (
	stdgzip "compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered returns records number lo up to, not including, hi.
func numbered(id runnel.ShardID, lo, hi int) []runnel.Record {
	var records []runnel.Record
	for n := lo; n < hi; n++ {
		records = append(records, runnel.Record{
			PartitionKey: fmt.Sprintf("key-%d", n%3), ShardID: id,
			Data:        fmt.Appendf(nil, `{"id":"%d","key":"key-%d"}`, n, n%3),
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))},
			ArrivalTime: created.Add(time.Duration(n) * time.Second),
		})
	}
	return records
}

func at(n int) runnel.Position {
	return runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))}
}

// place is an archive under construction.
type place struct {
	*testing.T
	store archive.Store
}

func (p *place) archive(cfg archive.Config) *archive.Archive {
	p.Helper()
	if cfg.Store == nil {
		cfg.Store = p.store
	}
	a, err := archive.New(cfg)
	if err != nil {
		p.Fatal(err)
	}
	return a
}

func shardOf(id runnel.ShardID, parents ...runnel.ShardID) sink.Shard {
	return sink.Shard{Stream: "orders", Created: created, ID: id, Parents: parents}
}

func (p *place) open(cfg archive.Config, shard sink.Shard) sink.Writer {
	p.Helper()
	w, err := p.archive(cfg).Open(p.Context(), shard)
	if err != nil {
		p.Fatal(err)
	}
	return w
}

// write writes records lo up to hi.
func (p *place) write(w sink.Writer, id runnel.ShardID, lo, hi int) sink.Committed {
	p.Helper()
	c, err := w.Write(p.Context(), sink.Batch{Records: numbered(id, lo, hi), Through: at(hi - 1)})
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *place) flush(w sink.Writer) sink.Committed {
	p.Helper()
	c, err := w.Flush(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *place) end(w sink.Writer) {
	p.Helper()
	if _, err := w.End(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func inMemory(t *testing.T) *place {
	return &place{t, archive.NewDirStoreOn(vfs.NewMem(), "to")}
}

// TestLayout shows the archive from outside, as ls and zcat show it.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	p := &place{T: t}
	w := p.open(archive.Config{Dir: filepath.Join(dir, "a", "to"), WriterID: "w"}, shardOf(parent))
	p.write(w, parent, 0, 2)
	p.flush(w)
	p.write(w, parent, 2, 3)
	p.end(w)
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const folder = "/a/to/orders@1700000000123/shardId-000000000000/"
	want := []string{folder + "001-0-0000000000.ndjson.gz", folder + "004-1001-0000000000.ndjson.gz"}
	if !slices.Equal(names, want) {
		t.Fatalf("got %q\nwant %q", names, want)
	}
	file, err := os.Open(filepath.Join(dir, want[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zcat, err := stdgzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zcat)
	if err != nil {
		t.Fatal(err)
	}
	const lines = `{"partitionKey":"key-0","sequenceNumber":"1000","subSequenceNumber":0,` +
		`"arrivalTime":"2023-11-14T22:13:20.123Z","shardId":"shardId-000000000000",` +
		`"data":{"id":"0","key":"key-0"}}` + "\n" +
		`{"partitionKey":"key-1","sequenceNumber":"1001","subSequenceNumber":0,` +
		`"arrivalTime":"2023-11-14T22:13:21.123Z","shardId":"shardId-000000000000",` +
		`"data":{"id":"1","key":"key-1"}}` + "\n"
	if string(text) != lines {
		t.Errorf("zcat shows %s\nwant %s", text, lines)
	}

	reader, err := archive.Open(filepath.Join(dir, "a", "to"))
	if err != nil {
		t.Fatal(err)
	}
	streams, err := reader.Streams(t.Context())
	if err != nil || len(streams) != 1 || streams[0].String() != "orders@1700000000123" {
		t.Fatalf("streams: %v, %v", streams, err)
	}
	var counts []int64
	for link, err := range reader.Links(t.Context(), archive.Chain{Stream: streams[0], ShardID: parent}) {
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, link.Count)
		if link.Writer != "w" || link.Nonce == "" || link.LastArrival.Before(link.FirstArrival) {
			t.Errorf("%+v", link)
		}
	}
	if !slices.Equal(counts, []int64{2, 1}) {
		t.Errorf("links of %v records", counts)
	}
	if _, err := archive.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an archive that is not there: %v", err)
	}
}

func TestCommitByAge(t *testing.T) {
	p := inMemory(t)
	now := created
	a := p.archive(archive.Config{Every: 5 * time.Second})
	a.SetClock(func() time.Time { return now })
	w, err := a.Open(t.Context(), shardOf(parent))
	if err != nil {
		t.Fatal(err)
	}
	idle := func(through runnel.Position) sink.Committed {
		c, err := w.Write(t.Context(), sink.Batch{Through: through})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now = now.Add(time.Hour) // an idle shard commits nothing
	if c := idle(runnel.Start()); c.End != runnel.Start() {
		t.Fatalf("committed %v", c)
	}
	if c := p.write(w, parent, 0, 1); c.End != runnel.Start() {
		t.Fatalf("committed at once: %v", c)
	}
	now = now.Add(5*time.Second - 1)
	if c := p.write(w, parent, 1, 2); c.End != runnel.Start() {
		t.Fatalf("committed early: %v", c)
	}
	now = now.Add(1)
	if c := idle(at(3)); c.End != at(3) { // filtered records count as reached
		t.Fatalf("committed %v, want up to %s", c, at(3))
	}
	now = now.Add(time.Hour)
	if c := idle(at(3)); c.End != at(3) { // no progress
		t.Fatalf("committed %v", c)
	}
	if c := p.flush(w); c.End != at(3) {
		t.Fatalf("committed %v", c)
	}
}

// TestCommitByAgeWithoutRecords shows when progress without a record is committed: later than
// a record, since it can be read again, and once, since each link is an object for ever.
func TestCommitByAgeWithoutRecords(t *testing.T) {
	p := inMemory(t)
	now := created
	a := p.archive(archive.Config{Every: 5 * time.Second})
	a.SetClock(func() time.Time { return now })
	w, err := a.Open(t.Context(), shardOf(parent))
	if err != nil {
		t.Fatal(err)
	}
	step := func(after time.Duration, n int, want runnel.Position) {
		t.Helper()
		now = now.Add(after)
		c, err := w.Write(t.Context(), sink.Batch{Through: at(n), State: func() []byte { return []byte{byte(n)} }})
		if err != nil || c.End != want {
			t.Fatalf("through %s: committed up to %s, %v, want %s", at(n), c.End, err, want)
		}
	}
	step(time.Hour, 0, runnel.Start())
	step(59*time.Second, 5, runnel.Start())
	step(time.Second-1, 6, runnel.Start())
	step(1, 7, at(7)) // a minute after the first
	for range 3 {     // idle: no link, however long
		step(time.Hour, 7, at(7))
	}
	step(time.Hour, 8, at(7)) // the minute begins with the progress
	// A record has its own age.
	if c := p.write(w, parent, 9, 10); c.End != at(7) {
		t.Fatalf("committed %v", c)
	}
	step(5*time.Second-1, 10, at(7))
	step(1, 11, at(11))
}

func TestCommitBySize(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{Size: 1}, shardOf(parent))
	if c := p.write(w, parent, 0, 3); c.End != at(2) {
		t.Fatalf("committed %v", c)
	}
	// A batch is never cut, whatever its size: the reader's state is known at its end.
	records := numbered(parent, 3, 7)
	for n := range records {
		records[n].Position = runnel.Position{Sequence: "1003", Sub: int64(n)}
	}
	records = append(records, numbered(parent, 8, 9)...)
	if _, err := w.Write(t.Context(), sink.Batch{Records: records, Through: at(8)}); err != nil {
		t.Fatal(err)
	}
	var ends []string
	chain := archive.Chain{Stream: archive.Stream{Name: "orders", Created: created}, ShardID: parent}
	for link, err := range archive.NewReader(p.store).Links(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, link.End.String())
	}
	if want := []string{"1002", "1008"}; !slices.Equal(ends, want) {
		t.Errorf("links end at %v, want %v", ends, want)
	}
}

// counting counts the objects that are read.
type counting struct {
	archive.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, name)
}

// TestToken shows that a start with a checkpoint and its token reads the tip, not the chain.
func TestToken(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{Size: 1}, shardOf(parent))
	row := p.write(w, parent, 0, 100)
	store := &counting{Store: p.store}
	shard := shardOf(parent)
	shard.Checkpoint, shard.Token = row.End, row.Token
	if c := p.open(archive.Config{Store: store}, shard).Committed(); !c.Equal(row) {
		t.Fatalf("found %v, want %v", c, row)
	}
	if gets := store.gets.Load(); gets != 2 {
		t.Errorf("%d objects were read, want the tip and the place behind it", gets)
	}
	shard.Checkpoint = at(50) // not the end of that link: the chain decides
	if c := p.open(archive.Config{Store: store}, shard).Committed(); !c.Equal(row) {
		t.Fatalf("found %v, want %v", c, row)
	}
}

// TestParentEnd shows that a child's first open reads its parent's last link, not the chain;
// and the chain where the last name in the folder is not that link.
func TestParentEnd(t *testing.T) {
	disk := vfs.NewMem()
	p := &place{t, archive.NewDirStoreOn(disk, "to")}
	w := p.open(archive.Config{Size: 1}, shardOf(parent))
	for n := range 50 {
		p.writeState(w, parent, n, n+1, n, "known")
	}
	p.end(w)
	open := func() int64 {
		t.Helper()
		store := &counting{Store: p.store}
		c := p.open(archive.Config{Store: store}, shardOf(child, parent)).Committed()
		if len(c.Parents) != 1 || string(c.Parents[0]) != "known" {
			t.Fatalf("the parent's state: %q", c.Parents)
		}
		return store.gets.Load()
	}
	if gets := open(); gets != 4 {
		t.Errorf("%d objects were read, want the parent's last link, that and the one before, which "+
			"holds the whole state, and the child's first", gets)
	}
	for _, stray := range []string{
		"099-" + strings.Repeat("9", 99) + "-0000000000.ndjson.gz", "copy.ndjson.gz",
	} {
		file, err := disk.Create("to/" + streamFolder + "/" + string(parent) + "/" + stray)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if gets := open(); gets < 52 {
			t.Errorf("%d objects were read, want the chain", gets)
		}
	}
}

func TestAhead(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	p.write(w, parent, 0, 3)
	row := p.flush(w)
	for _, checkpoint := range []runnel.Position{at(3), {Sequence: row.End.Sequence, Sub: 1}, runnel.End()} {
		shard := shardOf(parent)
		shard.Checkpoint, shard.Token = checkpoint, row.Token
		_, err := p.archive(archive.Config{}).Open(t.Context(), shard)
		ahead := new(archive.AheadError)
		if !errors.As(err, &ahead) || ahead.Checkpoint != checkpoint || ahead.Tip != at(2) {
			t.Errorf("checkpoint %s: %v", checkpoint, err)
			continue
		}
		for _, part := range []string{checkpoint.String(), "1002", "--app", "--from oldest"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
	}
}

func TestParents(t *testing.T) {
	p := inMemory(t)
	const other, grandchild runnel.ShardID = "shardId-000000000007", "shardId-000000000009"
	w := p.open(archive.Config{}, shardOf(parent))
	p.write(w, parent, 0, 3)
	p.flush(w)
	_, err := p.archive(archive.Config{}).Open(t.Context(), shardOf(child, parent))
	if !errors.Is(err, archive.ErrParentOpen) {
		t.Fatalf("a child of an open parent: %v", err)
	}
	p.end(w)
	w = p.open(archive.Config{}, shardOf(child, parent, other))
	p.write(w, child, 5, 6)
	p.flush(w)
	p.write(w, child, 6, 7)
	p.end(w)
	p.end(p.open(archive.Config{}, shardOf(grandchild, child)))
	chains, err := archive.NewReader(p.store).Shards(t.Context(),
		archive.Stream{Name: "orders", Created: created})
	if err != nil || len(chains) != 3 {
		t.Fatalf("%v, %v", chains, err)
	}
	if got := chains[1]; got.ShardID != child || !slices.Equal(got.Parents, []archive.Parent{
		{ShardID: parent, Link: at(2)}, {ShardID: other, None: true},
	}) {
		t.Errorf("%+v", got)
	}
	if got := chains[2]; got.ShardID != grandchild || !slices.Equal(got.Parents, []archive.Parent{
		{ShardID: child, Link: at(5)},
	}) {
		t.Errorf("%+v", got)
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []archive.Config{
		{},
		{Dir: "a", Store: inMemory(t).store},
		{Dir: "a", Every: -1},
		{Dir: "a", Every: 1},
		{Dir: "a", Size: -1},
		{Dir: "a", Size: 1 << 31},
		{Dir: "a", WriterID: strings.Repeat("w", 300)},
	} {
		if _, err := archive.New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	err := archive.Config{Every: 1, Size: -1}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not every fault is named: %v", err)
	}
}

// TestBadNames shows that no name leads out of the archive.
func TestBadNames(t *testing.T) {
	p := inMemory(t)
	good := shardOf(child, parent)
	for _, change := range []func(*sink.Shard){
		func(s *sink.Shard) { s.Stream = ".." },
		func(s *sink.Shard) { s.Stream = "a/b" },
		func(s *sink.Shard) { s.Stream = "" },
		func(s *sink.Shard) { s.ID = "../x" },
		func(s *sink.Shard) { s.ID = ".hidden" },
		func(s *sink.Shard) { s.Parents = []runnel.ShardID{"a b"} },
		func(s *sink.Shard) { s.Parents = []runnel.ShardID{"a", "b", "c"} },
		func(s *sink.Shard) { s.Created = time.Time{} },
	} {
		shard := good
		change(&shard)
		if _, err := p.archive(archive.Config{}).Open(t.Context(), shard); err == nil {
			t.Errorf("%+v was opened", shard)
		}
	}
	// A token of somewhere else is no short cut, and no error.
	for _, token := range []string{
		"../../x", "other@1/shardId-000000000001/001-0-0000000000.ndjson.gz",
		"orders@1700000000123/shardId-000000000000/../x", "orders@1700000000123/shardId-000000000000/end.ndjson.gz",
	} {
		shard := shardOf(parent)
		shard.Token = token
		p.open(archive.Config{}, shard)
	}
}

// TestForeignObject shows that a writer never builds on an object that is not a link.
func TestForeignObject(t *testing.T) {
	p := inMemory(t)
	const name = "orders@1700000000123/shardId-000000000000/001-0-0000000000.ndjson.gz"
	w := p.open(archive.Config{}, shardOf(parent))
	p.write(w, parent, 0, 3)
	if err := p.store.PutIfAbsent(t.Context(), name, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context()); !errors.Is(err, archive.ErrUnusableLink) {
		t.Errorf("flush: %v", err)
	}
	if _, err := p.archive(archive.Config{}).Open(t.Context(), shardOf(parent)); !errors.Is(err, archive.ErrUnusableLink) {
		t.Errorf("open: %v", err)
	}
}

// TestSweptPut has another process take the shard, and sweep, at the worst moment of a put:
// the put succeeds, and leaves nothing behind.
func TestSweptPut(t *testing.T) {
	disk := vfs.NewMem()
	var store *archive.DirStore
	sweeps := 0
	store = archive.NewDirStoreOn(vfs.Inject(disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpLink && sweeps < 2 {
			sweeps++
			if err := archive.NewDirStoreOn(disk, "to").Sweep(context.Background(), "f"); err != nil {
				t.Error(err)
			}
		}
		return nil
	}), "to")
	if err := store.PutIfAbsent(t.Context(), "f/a.ndjson.gz", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := store.PutIfAbsent(t.Context(), "f/a.ndjson.gz", []byte("y")); !errors.Is(err, archive.ErrObjectExists) {
		t.Fatalf("the second put: %v", err)
	}
	names, err := disk.List("to/f")
	if err != nil || !slices.Equal(names, []string{"a.ndjson.gz"}) || sweeps != 2 {
		t.Errorf("%v, %v after %d sweeps", names, err, sweeps)
	}
	if err := disk.MkdirAll("to/f/sub"); err != nil {
		t.Fatal(err)
	}
	if listing, err := store.List(t.Context(), "f"); err != nil ||
		!slices.Equal(listing.Objects, names) || !slices.Equal(listing.Folders, []string{"sub"}) {
		t.Errorf("%v, %v", listing, err)
	}
	if _, err := store.Get(t.Context(), "f/b"); !errors.Is(err, archive.ErrObjectNotFound) {
		t.Errorf("%v", err)
	}
}

// TestVanishedFolder removes the archive's folder under a writer, and moves it away: the chain does
// not go on in a new folder.
func TestVanishedFolder(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "to")
		open := func() *place {
			store, err := archive.NewDirStore(dir)
			if err != nil {
				t.Fatal(err)
			}
			return &place{t, store}
		}
		p := open()
		w := p.open(archive.Config{}, shardOf(parent))
		p.write(w, parent, 0, 3)
		p.flush(w)
		if reopened { // by a process that has not made the folder
			p = open()
			w = p.open(archive.Config{}, shardOf(parent))
		}
		p.must(os.Rename(dir, dir+".away"))
		p.write(w, parent, 3, 6)
		if _, err := w.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("got %v, want that the folder was removed", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder was made anew: %v", err)
		}
		p.must(os.Rename(dir+".away", dir)) // mounted again: it goes on
		w = p.open(archive.Config{}, shardOf(parent))
		p.write(w, parent, 3, 6)
		p.flush(w)
		p.wantCounts(p.verify(archive.VerifyOptions{}), map[string]int64{})
	}
}

// TestDiskFull shows that a commit that fails leaves nothing, and that the next one succeeds.
func TestDiskFull(t *testing.T) {
	disk := vfs.NewMem()
	full := true
	store := archive.NewDirStoreOn(vfs.Inject(disk, func(op vfs.Op) error {
		if full && op.Kind == vfs.OpWrite {
			return &vfs.ShortWrite{N: 10, Err: vfs.ErrNoSpace}
		}
		return nil
	}), "to")
	p := &place{t, store}
	w := p.open(archive.Config{}, shardOf(parent))
	p.write(w, parent, 0, 3)
	if _, err := w.Flush(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("flush: %v", err)
	}
	if _, err := w.Flush(t.Context()); err == nil {
		t.Fatal("the writer is usable after an error")
	}
	full = false
	w = p.open(archive.Config{}, shardOf(parent))
	if end := w.Committed().End; end != runnel.Start() {
		t.Fatalf("committed up to %s", end)
	}
	p.write(w, parent, 0, 3)
	p.flush(w)
}
