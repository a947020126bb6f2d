package itemstore

import (
	"context"
	"strings"

	"github.com/google/btree"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Range selects a part of a table or of one of its indexes, and limits the size of a page.
type Range struct {
	Index    string  // read this index instead of the table; "": the table
	Segment  Segment // of the hashes of partition keys
	Hash     Value   // only items with this partition key; nil: all
	Sort     Sort    // only with Hash: a condition on the sort keys
	Backward bool    // in descending order

	After    *Key // begin behind this primary key, which need not exist; nil: at the start
	AfterIn  *Key // with Index and After: begin behind this index key
	MaxItems int  // 0: no limit
	MaxBytes int  // the page ends with the item that reaches it; 0: no limit
}

// Sort is a condition on sort keys. The zero value accepts all. Values are of the key's kind.
type Sort struct {
	Low, High         Value // low <= key <= high; nil: no bound
	LowOpen, HighOpen bool  // < instead of <=
	Prefix            Value // a String or Binary that the key begins with; nil: any
}

// Page is a part of a table or index at one instant, in its order (the hash of the partition key,
// the partition key, the sort key). The items of an index are projected.
type Page struct {
	Items []Item
	Bytes int  // sum of the items' sizes
	Full  bool // a limit was reached: there may be more after Last
	Last  Key  // the primary key of the last item, if there is one
}

// Scan returns a page once its content is durable. Errors: ErrKey, ErrTableNotFound,
// ErrIndexNotFound, or the log's.
func (s *Store) Scan(ctx context.Context, t *Table, r Range) (Page, error) {
	page, lsn, err := t.scan(r)
	if err := s.shown(ctx, lsn, err); err != nil {
		return Page{}, err
	}
	if n := len(page.Items); n > 0 {
		if page.Last, err = t.schema.Key(page.Items[n-1]); err != nil {
			return Page{}, err // unreachable: every item was accepted with its key
		}
	}
	return page, nil
}

func (t *Table) scan(r Range) (Page, wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.dropped {
		return Page{}, t.mu.changed, ErrTableNotFound
	}
	var page Page
	take := func(item Item, size int) bool {
		page.Items = append(page.Items, item)
		page.Bytes += size
		page.Full = len(page.Items) == r.MaxItems || (r.MaxBytes > 0 && page.Bytes >= r.MaxBytes)
		return !page.Full
	}
	if r.Index == "" {
		in, err := r.span(t.schema, t.schema)
		if err != nil {
			return Page{}, t.mu.changed, err
		}
		walk(t.mu.items, in, r.Backward,
			func(p position) *entry { return &entry{place: p.place} },
			func(e *entry) position { return position{place: e.place} },
			func(e *entry) bool { return take(e.item(), e.size) })
		return page, t.mu.changed, nil
	}
	x := t.index(r.Index)
	if x == nil {
		return Page{}, t.mu.changed, ErrIndexNotFound
	}
	in, err := r.span(t.schema, x.Schema)
	if err != nil {
		return Page{}, t.mu.changed, err
	}
	walk(x.tree, in, r.Backward,
		func(p position) *indexEntry { return &indexEntry{place: p.place, of: p.of} },
		func(e *indexEntry) position { return position{e.place, e.of} },
		func(e *indexEntry) bool { return take(decodeItem(e.body), e.size) })
	return page, t.mu.changed, nil
}

// position is a place in a table, or in an index together with the item's place in the table.
type position struct{ place, of string }

func (p position) before(other position) bool {
	order := strings.Compare(p.place, other.place)
	return order < 0 || order == 0 && p.of < other.of
}

// span is the positions [low, high); with endless, it has no upper bound.
type span struct {
	low, high position
	endless   bool
}

// walk calls see for a tree's entries in the span, in ascending or descending order, until it
// returns false.
func walk[E any](
	tree *btree.BTreeG[E], in span, backward bool,
	at func(position) E, where func(E) position, see func(E) bool,
) {
	switch {
	case !backward:
		tree.AscendGreaterOrEqual(at(in.low), func(e E) bool {
			return (in.endless || where(e).before(in.high)) && see(e)
		})
	case in.endless:
		tree.Descend(func(e E) bool { return !where(e).before(in.low) && see(e) })
	default:
		tree.DescendLessOrEqual(at(in.high), func(e E) bool {
			if where(e) == in.high {
				return true // which the span excludes
			}
			return !where(e).before(in.low) && see(e)
		})
	}
}

// span returns the positions that the range selects in a table, or in an index with the schema
// in.
func (r *Range) span(table, in Schema) (span, error) {
	low, high := r.Segment.bounds()
	if r.Hash != nil {
		if r.Hash.Kind() != in.Hash.Kind {
			return span{}, ErrKey
		}
		if fault := r.Sort.check(in.Range); fault != nil {
			return span{}, fault
		}
		low, high = r.Sort.bounds(Key{Hash: r.Hash}.place())
	}
	s := span{position{place: low}, position{place: high}, high == ""}
	if r.After == nil {
		return s, nil
	}
	if err := table.check(*r.After); err != nil {
		return span{}, err
	}
	after := position{place: r.After.place()}
	if r.Index != "" {
		if r.AfterIn == nil {
			return span{}, ErrKey
		}
		if err := in.check(*r.AfterIn); err != nil {
			return span{}, err
		}
		after = position{r.AfterIn.place(), r.After.place()}
	}
	if r.Backward {
		if s.endless || after.before(s.high) {
			s.high, s.endless = after, false
		}
		return s, nil
	}
	// The next possible place is this one plus a zero byte.
	if r.Index == "" {
		after.place += "\x00"
	} else {
		after.of += "\x00"
	}
	if s.low.before(after) {
		s.low = after
	}
	return s, nil
}

func (s *Sort) check(part KeyAttribute) error {
	for _, value := range []Value{s.Low, s.High, s.Prefix} {
		if value != nil && (part.Name == "" || value.Kind() != part.Kind) {
			return ErrKey
		}
	}
	if s.Prefix != nil && part.Kind == KindNumber {
		return ErrKey
	}
	return nil
}

// bounds returns the places [low, high) of the keys that fulfil the condition; hash is their
// place without the sort key. high "" means no upper bound.
func (s *Sort) bounds(hash string) (low, high string) {
	low, high = hash, follower(hash)
	if s.Prefix != nil {
		low = string(appendOrdered([]byte(hash), s.Prefix))
		high = follower(low)
	}
	if s.Low != nil {
		bound := string(appendOrdered([]byte(hash), s.Low))
		if s.LowOpen {
			bound += "\x00"
		}
		low = max(low, bound)
	}
	if s.High != nil {
		bound := string(appendOrdered([]byte(hash), s.High))
		if !s.HighOpen {
			bound += "\x00"
		}
		if high == "" || bound < high {
			high = bound
		}
	}
	return low, high
}

// follower returns the least string above all strings with the prefix, or "" if there is none.
func follower(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}
