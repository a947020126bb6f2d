package archive_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// knower is a reader before a writer: it gives batches the state of its filter, and the change.
type knower struct {
	filter *aggregate.Filter
	based  bool
	delta  []byte // the last batch's
}

// goOn returns a reader that goes on from the state that the writer has found.
func (p *place) goOn(w sink.Writer) *knower {
	p.Helper()
	k := &knower{filter: new(aggregate.Filter)}
	states := [][]byte{w.Committed().State}
	if w.Committed().End == runnel.Start() {
		states = w.Committed().Parents
	}
	for _, state := range states {
		if len(state) == 0 {
			continue
		}
		k.based = w.Committed().End != runnel.Start()
		if err := k.filter.UnmarshalBinary(state); err != nil {
			p.Fatal(err)
		}
	}
	k.filter.Track()
	return k
}

func (k *knower) state() []byte {
	state, _ := k.filter.MarshalBinary()
	return state
}

// batch is that of records [lo, hi), each a unit of its own with the given low.
func (k *knower) batch(id runnel.ShardID, lo, hi int, low uint64) sink.Batch {
	b := sink.Batch{Records: numbered(id, lo, hi), Through: at(hi - 1)}
	for i, r := range b.Records {
		b.Records[i].PartitionKey = fmt.Sprintf("key-%d", lo+i)
		unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: uint64(lo + i + 1), Low: low}
		k.filter.Admit(unit, aggregate.LaneOf(b.Records[i].PartitionKey, ""), r.ArrivalTime)
	}
	k.finish(&b)
	return b
}

func (k *knower) finish(b *sink.Batch) {
	b.State = k.state
	if k.delta, _ = k.filter.Delta().MarshalBinary(); k.based {
		b.Delta = k.delta
	}
	k.based = true
}

func (p *place) commit(w sink.Writer, b sink.Batch) {
	p.Helper()
	if _, err := w.Write(p.Context(), b); err != nil {
		p.Fatal(err)
	}
	p.flush(w)
}

// wantKnown checks the state that a new writer finds.
func (p *place) wantKnown(shard sink.Shard, k *knower) {
	p.Helper()
	if got := p.open(archive.Config{}, shard).Committed().State; !bytes.Equal(got, k.state()) {
		p.Fatalf("found the state\n%x\nwant\n%x", got, k.state())
	}
}

func (p *place) chainOf(id runnel.ShardID) (links []*archive.Link) {
	p.Helper()
	chain := archive.Chain{Stream: archive.Stream{Name: "orders", Created: created}, ShardID: id}
	for link, err := range archive.NewReader(p.store).Links(p.Context(), chain) {
		if err != nil {
			p.Fatal(err)
		}
		links = append(links, link)
	}
	return links
}

// TestChanges follows a chain over several whole states: each link is small, each state is found,
// also by a child, and each 64th link has the whole state.
func TestChanges(t *testing.T) {
	for _, whole := range []int{1, 3, 64} {
		p := inMemory(t)
		cfg := archive.Config{Whole: whole}
		w := p.open(cfg, shardOf(parent))
		k := p.goOn(w)
		const links = 150
		for n := range links {
			if n%40 == 39 { // handed over
				w = p.open(cfg, shardOf(parent))
				k = p.goOn(w)
			}
			p.commit(w, k.batch(parent, 3*n, 3*n+3, uint64(1+n)))
			if n%7 == 0 {
				p.wantKnown(shardOf(parent), k)
			}
		}
		p.end(w)
		p.wantKnown(shardOf(parent), k)
		since := 0
		for n, link := range p.chainOf(parent) {
			if link.Change == nil != (n%whole == 0) || link.Change != nil == (len(link.State) > 0) {
				t.Errorf("every %d: link %d has the change %v, a state of %d bytes", whole, n,
					link.Change != nil, len(link.State))
			}
			if since++; link.Change == nil {
				since = 0
			} else if len(link.Change.Delta) > 60 {
				t.Errorf("link %d has a change of %d bytes", n, len(link.Change.Delta))
			}
			if since >= whole {
				t.Errorf("link %d is the %dth without a whole state", n, since)
			}
		}
		c := p.open(archive.Config{}, shardOf(child, parent)).Committed()
		if len(c.Parents) != 1 || !bytes.Equal(c.Parents[0], k.state()) {
			t.Errorf("the child finds %x", c.Parents)
		}
		if report := p.verify(archive.VerifyOptions{}); !report.OK() || report.Links != links+1 {
			t.Errorf("%+v", report)
		}
	}
}

// TestChangesAdopted has two writers race. The loser goes on with the other's state, and its own
// state is never written.
func TestChangesAdopted(t *testing.T) {
	p := inMemory(t)
	cfg := archive.Config{Whole: 3}
	first, second := p.open(cfg, shardOf(parent)), p.open(cfg, shardOf(parent))
	a, b := p.goOn(first), p.goOn(second)
	for n := range 30 {
		p.commit(first, a.batch(parent, 2*n, 2*n+1, uint64(n+1)))
		late := b.batch(parent, 2*n, 2*n+2, 1) // it has read further, and knows another mark
		if _, err := second.Write(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		_, err := second.Flush(t.Context())
		if moved := new(sink.MovedError); !errors.As(err, &moved) || !bytes.Equal(moved.To.State, a.state()) {
			t.Fatalf("link %d: %v", n, err)
		}
		b = p.goOn(second)
		p.commit(second, b.batch(parent, 2*n+1, 2*n+2, uint64(2*n+1)))
		p.wantKnown(shardOf(parent), b)
		first, second, a, b = second, first, b, a
		if _, err = second.Flush(t.Context()); err != nil { // no commit: it learns later
			t.Fatal(err)
		}
		second = p.open(cfg, shardOf(parent))
		b = p.goOn(second)
	}
	if report := p.verify(archive.VerifyOptions{}); !report.OK() || report.Records != 60 {
		t.Errorf("%+v", report)
	}
}

// TestChangeUnknown shows that a batch without a change, or a reader without a state, makes the
// next link hold the whole state again.
func TestChangeUnknown(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	k := p.goOn(w)
	p.commit(w, k.batch(parent, 0, 1, 1))
	unknown := k.batch(parent, 1, 2, 1)
	unknown.Delta = nil
	if _, err := w.Write(t.Context(), unknown); err != nil {
		t.Fatal(err)
	}
	p.commit(w, k.batch(parent, 2, 3, 1)) // its change alone is not that of the link
	p.wantKnown(shardOf(parent), k)
	p.commit(w, k.batch(parent, 3, 4, 1))
	p.commit(w, sink.Batch{Records: numbered(parent, 4, 5), Through: at(4)}) // it keeps no state
	p.wantFound(p.open(archive.Config{}, shardOf(parent)), at(4), "")
	unknown = k.batch(parent, 5, 6, 1)
	unknown.Delta = nil
	p.commit(w, unknown)
	p.commit(w, k.batch(parent, 6, 7, 1))
	p.wantKnown(shardOf(parent), k)
	// One link, with a batch of a reader that keeps no state, and one of a reader that begins
	// without a state.
	if _, err := w.Write(t.Context(), sink.Batch{Records: numbered(parent, 7, 8), Through: at(7)}); err != nil {
		t.Fatal(err)
	}
	k = &knower{filter: new(aggregate.Filter), based: true}
	k.filter.Track()
	p.commit(w, k.batch(parent, 8, 9, 1))
	p.wantKnown(shardOf(parent), k)
	var kinds []string
	for _, link := range p.chainOf(parent) {
		kinds = append(kinds, fmt.Sprint(link.Change != nil, len(link.State) > 0))
	}
	if got := strings.Join(kinds, ", "); got != "false true, false true, true false, false false, false true, true false, true false" {
		t.Error(got)
	}
	if _, err := w.Write(t.Context(), sink.Batch{Through: at(9), State: k.state, Delta: []byte{9}}); !errors.Is(err, aggregate.ErrDeltaSyntax) {
		t.Errorf("a change that is none: %v", err)
	}
}

// TestChangeSinceNothing shows that a change since an empty state is a whole state: in a first
// link, and behind batches and links of a reader that had met no unit, in one link with them too.
func TestChangeSinceNothing(t *testing.T) {
	for _, quiet := range []int{0, 1, 2} {
		p := inMemory(t)
		w := p.open(archive.Config{}, shardOf(parent))
		for n := range quiet {
			p.write(w, parent, n, n+1)
			if n == 0 {
				p.flush(w)
			}
		}
		k := p.goOn(w)
		k.based = true
		for n := 2; n < 80; n++ {
			p.commit(w, k.batch(parent, n, n+1, 1))
			p.wantKnown(shardOf(parent), k)
		}
		links := p.chainOf(parent)[min(quiet, 1):]
		for n, link := range links {
			if own := link.Change != nil && link.Change.Base == link.Previous; own != (n == 0) {
				t.Errorf("%d quiet: link %d: %+v", quiet, n, link.Change)
			}
			if whole := len(link.State) > 0; whole != (n == 64) {
				t.Errorf("%d quiet: link %d has a state of %d bytes", quiet, n, len(link.State))
			}
		}
		if report := p.verify(archive.VerifyOptions{}); !report.OK() {
			t.Errorf("%+v", report)
		}
	}
}

// TestChangeDamaged shows that a state that cannot be computed is an error, for an open and for
// verify, and never an empty state.
func TestChangeDamaged(t *testing.T) {
	folder := "to/orders@1700000000123/" + string(parent) + "/"
	for name, damage := range map[string]func(disk *vfs.Mem, names []string) error{
		"the whole state is missing": func(disk *vfs.Mem, names []string) error { return disk.Remove(folder + names[0]) },
		"a change is missing":        func(disk *vfs.Mem, names []string) error { return disk.Remove(folder + names[2]) },
		"a change is damaged":        func(disk *vfs.Mem, names []string) error { return spoil(disk, folder+names[2]) },
		"the whole state is damaged": func(disk *vfs.Mem, names []string) error { return spoil(disk, folder+names[0]) },
		"the records are another's": func(disk *vfs.Mem, names []string) error {
			return truncate(disk, folder+names[2])
		},
	} {
		disk := vfs.NewMem()
		p := &place{t, archive.NewDirStoreOn(disk, "to")}
		w := p.open(archive.Config{}, shardOf(parent))
		k := p.goOn(w)
		for n := range 5 {
			p.commit(w, k.batch(parent, n, n+1, 1))
		}
		row := w.Committed()
		names, err := disk.List(strings.TrimSuffix(folder, "/"))
		if err == nil {
			err = damage(disk, names)
		}
		if err != nil {
			t.Fatal(err)
		}
		shard := shardOf(parent)
		shard.Checkpoint, shard.Token = row.End, row.Token
		_, err = p.archive(archive.Config{}).Open(t.Context(), shard)
		if !errors.Is(err, archive.ErrUnusableLink) {
			t.Errorf("%s: %v", name, err)
		}
		if report := p.verify(archive.VerifyOptions{}); report.OK() {
			t.Errorf("%s: verify says ok", name)
		}
		if _, err = w.Write(t.Context(), k.batch(parent, 5, 6, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = w.Flush(t.Context()); err != nil { // it knows the state itself
			t.Errorf("%s: %v", name, err)
		}
	}
}

// spoil changes a byte in the middle of an object's link.
func spoil(disk *vfs.Mem, name string) error {
	return change(disk, name, func(text []byte) []byte {
		text[200] ^= 1
		return text
	})
}

// truncate cuts the records off.
func truncate(disk *vfs.Mem, name string) error {
	return change(disk, name, func(text []byte) []byte { return text[:len(text)-20] })
}

func change(disk *vfs.Mem, name string, how func([]byte) []byte) error {
	file, err := disk.Open(name)
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err != nil {
		return err
	}
	text := make([]byte, size)
	if _, err := file.ReadAt(text, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := disk.Remove(name); err != nil {
		return err
	}
	if file, err = disk.Create(name); err != nil {
		return err
	}
	_, err = file.WriteAt(how(text), 0)
	return err
}

// TestChangeOfAnotherBase shows that verify sees a change that leads past a whole state.
func TestChangeOfAnotherBase(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	k := p.goOn(w)
	var stale sink.Batch
	for n := range 4 {
		if n == 3 {
			// A writer with a wrong tip, which a store without conditions would accept.
			stale = k.batch(parent, n, n+1, 1)
			break
		}
		b := k.batch(parent, n, n+1, 1)
		if n == 2 {
			b.Delta = nil // a whole state
		}
		p.commit(w, b)
	}
	p.store = &rebasing{p.store}
	w = p.open(archive.Config{}, shardOf(parent))
	stale.Delta = []byte{}
	p.commit(w, stale)
	report := p.verify(archive.VerifyOptions{})
	if report.Damaged.Count != 1 || !strings.Contains(report.Damaged.Examples[0], "last whole one") {
		t.Errorf("%+v", report)
	}
	if _, err := p.archive(archive.Config{}).Open(t.Context(), shardOf(parent)); !errors.Is(err, archive.ErrUnusableLink) {
		t.Errorf("got %v", err)
	}
}

// rebasing is a store that bases every change on the chain's start.
type rebasing struct{ archive.Store }

func (r *rebasing) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	data, err := archive.Rebase(data, runnel.Start())
	if err != nil {
		return err
	}
	return r.Store.PutIfAbsent(ctx, name, data)
}

// TestVersion2 reads an archive of an older version and goes on with it: the states of its links
// are whole, and in the older form.
func TestVersion2(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "version2"))); err != nil {
		t.Fatal(err)
	}
	store, err := archive.NewDirStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t, store}
	if report := p.verify(archive.VerifyOptions{}); !report.OK() || report.Links != 5 || report.Records != 7 {
		t.Fatalf("%+v", report)
	}
	w := p.open(archive.Config{}, shardOf(child, parent))
	const state = "01ebff95ffbc310207000000000000000000000000000000e807010304254877b3c94f7d4a77fa3cc3935098d3" +
		"024c71db9c519db756d69ad0cccabf029202c5dd1913da9f54b0aa170b8c8141dc7e0800000000000000000000000000000000090101"
	p.wantFound(w, at(6), string(mustHex(t, state)))
	k := p.goOn(w)
	for n, key := range map[uint64]string{3: "key-0", 4: "key-1", 5: "key-2"} {
		unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: n, Low: 1}
		if k.filter.Admit(unit, aggregate.LaneOf(key, ""), created.Add(7*time.Second)) != aggregate.VerdictDouble {
			t.Errorf("unit %d is fresh", n)
		}
	}
	for n := 7; n < 12; n++ { // the change goes on from a state of the older form
		p.commit(w, k.batch(child, n, n+1, 1))
		p.wantKnown(shardOf(child, parent), k)
	}
	p.end(w)
	p.wantKnown(shardOf(child, parent), k)
	if report := p.verify(archive.VerifyOptions{}); !report.OK() || report.Ended != 2 {
		t.Errorf("%+v", report)
	}
	for n, link := range p.chainOf(child) {
		if link.Change == nil != (n == 0) {
			t.Errorf("link %d: a change: %v", n, link.Change != nil)
		}
	}
}

func mustHex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKeysThatLinesCannotHold shows that a lane is found again for every key.
func TestKeysThatLinesCannotHold(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	k := p.goOn(w)
	p.commit(w, k.batch(parent, 0, 1, 1))
	b := sink.Batch{Records: numbered(parent, 1, 5), Through: at(4)}
	for i, key := range [][2]string{{"\xff\x00", ""}, {"key", "12"}, {"key", "1\xff"}, {"\u2028<&>\"", ""}} {
		r := &b.Records[i]
		r.PartitionKey, r.ExplicitHashKey = key[0], key[1]
		unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: uint64(i + 2), Low: 1}
		k.filter.Admit(unit, aggregate.LaneOf(key[0], key[1]), r.ArrivalTime)
	}
	k.finish(&b)
	p.commit(w, b)
	p.wantKnown(shardOf(parent), k)
}
