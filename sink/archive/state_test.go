package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// writeState writes records lo up to hi, through the position of number through.
func (p *place) writeState(w sink.Writer, id runnel.ShardID, lo, hi, through int, state string) {
	p.Helper()
	_, err := w.Write(p.Context(), sink.Batch{
		Records: numbered(id, lo, hi), Through: at(through), State: always(state),
	})
	if err != nil {
		p.Fatal(err)
	}
}

// wantState checks the last commit that a writer knows. The commit has the state only if the writer
// has found it.
func (p *place) wantState(w sink.Writer, end runnel.Position, state string) {
	p.Helper()
	c := w.Committed()
	if c.End != end || c.State != nil && string(c.State) != state || c.Parents != nil {
		p.Fatalf("committed %+v, want %q up to %s", c, state, end)
	}
}

// wantFound checks the commit that a writer has found, its state included.
func (p *place) wantFound(w sink.Writer, end runnel.Position, state string) {
	p.Helper()
	if p.wantState(w, end, state); string(w.Committed().State) != state {
		p.Fatalf("found %+v, want the state %q", w.Committed(), state)
	}
}

// links returns the contents of each link of the shard.
func (p *place) links(id runnel.ShardID) (links []string) {
	p.Helper()
	chain := archive.Chain{Stream: archive.Stream{Name: "orders", Created: created}, ShardID: id}
	for link, err := range archive.NewReader(p.store).Links(p.Context(), chain) {
		if err != nil {
			p.Fatal(err)
		}
		state := string(link.State)
		if link.Change != nil {
			state = "since " + link.Change.Base.String()
		}
		links = append(links, fmt.Sprintf("%s %d %s", link.End, link.Count, state))
	}
	return links
}

func TestState(t *testing.T) {
	p := inMemory(t)
	w, late := p.open(archive.Config{}, shardOf(parent)), p.open(archive.Config{}, shardOf(parent))
	p.writeState(w, parent, 0, 2, 1, "a")
	p.writeState(w, parent, 2, 3, 2, "b")
	if c := w.Committed(); c.State != nil {
		t.Fatalf("a state that no commit has: %q", c.State)
	}
	p.flush(w)
	p.wantState(w, at(2), "b")
	p.wantFound(p.open(archive.Config{}, shardOf(parent)), at(2), "b")

	// Only doubles: their position and the state are progress.
	p.writeState(w, parent, 0, 0, 5, "c")
	p.wantState(w, at(2), "b")
	p.flush(w)
	p.wantState(w, at(5), "c")
	p.writeState(w, parent, 6, 7, 8, "d")
	p.flush(w)

	// A late writer adopts the other writer's position and state.
	p.writeState(late, parent, 0, 1, 0, "of another")
	_, err := late.Flush(t.Context())
	moved := new(sink.MovedError)
	if !errors.As(err, &moved) || moved.To.End != w.Committed().End {
		t.Fatalf("got %v, want %v", err, w.Committed())
	}
	p.wantFound(late, at(8), "d")
	p.end(late) // and ends with it, if it has no other
	p.wantState(late, runnel.End(), "d")

	if got, want := p.links(parent), []string{
		"1002 3 b", "1005 0 c", "1008 1 d", "end 0 since 1005",
	}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
	report := p.verify(p.source(sourceLines(0, 1, 2, 6)))
	p.wantCounts(report, map[string]int64{})
	if !report.OK() || report.Links != 4 || report.Records != 4 {
		t.Errorf("%+v", report)
	}
	var read []runnel.Record
	stream := archive.Stream{Name: "orders", Created: created}
	for record, err := range archive.NewReader(p.store).All(t.Context(), stream) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, record)
	}
	if want := append(numbered(parent, 0, 3), numbered(parent, 6, 7)...); !slices.EqualFunc(read, want, equal) {
		t.Errorf("read %v", read)
	}
}

// TestParentStates shows the states with which the reader of a child begins: for each parent, the
// state at its chain's end.
func TestParentStates(t *testing.T) {
	p := inMemory(t)
	const other, none, heir runnel.ShardID = "shardId-000000000002", "shardId-000000000003", "shardId-000000000004"
	for id, state := range map[runnel.ShardID]string{parent: "of parent", other: "of other"} {
		w := p.open(archive.Config{}, shardOf(id))
		p.writeState(w, id, 0, 3, 2, "not yet "+state)
		p.flush(w)
		p.writeState(w, id, 3, 4, 3, state)
		p.end(w)
	}
	wantParents := func(w sink.Writer, want ...[]byte) {
		t.Helper()
		c := w.Committed()
		if c.End != runnel.Start() || c.State != nil || !slices.EqualFunc(c.Parents, want, bytes.Equal) {
			t.Fatalf("committed %+v, want the parents' states %q", c, want)
		}
	}
	wantParents(p.open(archive.Config{}, shardOf(child, parent, other)), []byte("of parent"), []byte("of other"))
	wantParents(p.open(archive.Config{}, shardOf(child, other, parent)), []byte("of other"), []byte("of parent"))
	w := p.open(archive.Config{}, shardOf(child, none, parent))
	late := p.open(archive.Config{}, shardOf(child, none, parent))
	wantParents(w, nil, []byte("of parent"))

	// A shard without a record hands on the state that the reader has merged.
	if _, err := w.Write(t.Context(), sink.Batch{State: always("union")}); err != nil {
		t.Fatal(err)
	}
	p.flush(w)
	wantParents(w, nil, []byte("of parent")) // no position, no commit
	p.end(w)
	p.wantState(w, runnel.End(), "union")
	_, err := late.End(t.Context())
	if moved := new(sink.MovedError); !errors.As(err, &moved) {
		t.Fatalf("got %v", err)
	}
	p.wantFound(late, runnel.End(), "union")
	wantParents(p.open(archive.Config{}, shardOf(heir, child)), []byte("union"))
	if got := p.links(child); !slices.Equal(got, []string{"end 0 union"}) {
		t.Errorf("links %q", got)
	}
}

func TestStateSize(t *testing.T) {
	p := inMemory(t)
	large := bytes.Repeat([]byte("state"), archive.MaxState/5+1)
	w := p.open(archive.Config{}, shardOf(parent))
	write := func(n, size int) error {
		_, err := w.Write(t.Context(), sink.Batch{
			Records: numbered(parent, n, n+1), Through: at(n), State: always(string(large[:size])),
		})
		return err
	}
	if err := write(0, 12<<20); err != nil {
		t.Fatal(err)
	}
	p.flush(w)
	p.wantFound(p.open(archive.Config{}, shardOf(parent)), at(0), string(large[:12<<20]))
	if err := write(1, archive.MaxState); err != nil {
		t.Fatal(err)
	}
	p.flush(w)
	if err := write(2, archive.MaxState+1); err != nil {
		t.Error(err)
	}
	if _, err := w.Flush(t.Context()); !errors.Is(err, archive.ErrStateTooLarge) {
		t.Errorf("got %v, want ErrState", err)
	}
	if _, err := w.Flush(t.Context()); err == nil {
		t.Error("the writer is usable after an error")
	}
	p.wantFound(p.open(archive.Config{}, shardOf(parent)), at(1), string(large[:archive.MaxState]))
	if report := p.verify(archive.VerifyOptions{}); !report.OK() || report.Records != 2 {
		t.Errorf("%+v", report)
	}
}

// TestThroughBack shows that a batch cannot end before the records that were written.
func TestThroughBack(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{}, shardOf(parent))
	p.writeState(w, parent, 0, 2, 3, "a")
	_, err := w.Write(t.Context(), sink.Batch{Through: at(2), State: always("b")})
	if !errors.Is(err, sink.ErrOutOfOrder) {
		t.Errorf("got %v, want ErrOrder", err)
	}
}
