package itemstore

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wal"
)

// Range is a part of a table to scan, and how much of it at once.
type Range struct {
	Segment  Segment
	After    *Key // starts after this key, which need not be there; nil: from the start
	MaxItems int  // 0: no limit
	MaxBytes int  // the item that reaches it is the page's last; 0: no limit
}

// Page is a part of a scan: the items in the table's order (the hash of the partition key, the
// partition key, the sort key), as they are at one instant.
type Page struct {
	Items []Item
	Bytes int  // sum of the items' sizes
	Full  bool // a limit was reached: there may be more after Last
	Last  Key  // of the last item, if there is one
}

// Scan returns a page, once everything that it shows is durable. Errors: ErrKey,
// ErrTableNotFound, or the log's.
func (s *Store) Scan(ctx context.Context, t *Table, r Range) (Page, error) {
	start, end := r.Segment.bounds()
	if r.After != nil {
		if err := t.schema.check(*r.After); err != nil {
			return Page{}, err
		}
		// The key's place and a zero byte is the very next one.
		start = max(start, r.After.place()+"\x00")
	}
	page, lsn, err := t.scan(start, end, r)
	if err := s.shown(ctx, lsn, err); err != nil {
		return Page{}, err
	}
	if n := len(page.Items); n > 0 {
		if page.Last, err = t.schema.Key(page.Items[n-1]); err != nil {
			return Page{}, err // not reached: every item was accepted with its key
		}
	}
	return page, nil
}

func (t *Table) scan(start, end string, r Range) (Page, wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.dropped {
		return Page{}, t.mu.changed, ErrTableNotFound
	}
	var page Page
	t.mu.items.AscendGreaterOrEqual(&entry{place: start}, func(e *entry) bool {
		if end != "" && e.place >= end {
			return false
		}
		page.Items = append(page.Items, e.item)
		page.Bytes += e.size
		page.Full = len(page.Items) == r.MaxItems || (r.MaxBytes > 0 && page.Bytes >= r.MaxBytes)
		return !page.Full
	})
	return page, t.mu.changed, nil
}
