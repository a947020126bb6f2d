package itemstore

import (
	"errors"
	"strings"
	"testing"
)

// TestVersions: data that an older binary can read is written in the older form.
func TestVersions(t *testing.T) {
	meta := func(m Meta) []byte {
		frame, err := appendMeta(newFrame(nil), changeCreate, 1, &m)
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for name, test := range map[string]struct {
		frame []byte
		want  byte
	}{
		"item":     {appendPut(newFrame(nil), 1, encoded(Item{"id": String("a")})), 1},
		"table":    {meta(Meta{Name: "t", Schema: byID}), 1},
		"index":    {meta(Meta{Name: "t", Schema: byID, Indexes: []Index{byOwner}}), 2},
		"recovery": {meta(Meta{Name: "t", Schema: byID, Recovery: &Recovery{}}), 2},
		"token":    {appendToken(newFrame(nil), Token{}), 2},
	} {
		if test.frame[0] != test.want {
			t.Errorf("%s: version %d, want %d", name, test.frame[0], test.want)
		}
	}
	for _, payload := range [][]byte{{0}, {frameNewest + 1}} {
		err := decodeFrame(payload, nil)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "this program knows 2") {
			t.Errorf("%v", err)
		}
	}
	for _, payload := range [][]byte{{0, 1, 0}, {snapshotNewest + 1, 1, 0}} {
		if err := newStore(Config{}).Restore(payload); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v", err)
		}
	}
	snapshot := func(s *Store) byte {
		text, err := s.Freeze()(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text[0]
	}
	s := newStore(Config{})
	if got := snapshot(s); got != 1 {
		t.Errorf("empty: %d", got)
	}
	change := change{op: changeCreate, table: 1, meta: &Meta{Name: "t", Schema: byID}}
	if err := s.apply(change); err != nil || snapshot(s) != 1 {
		t.Errorf("table: %v", err)
	}
	change.op, change.meta = changeAlter, &Meta{Name: "t", Schema: byID, Indexes: []Index{byOwner}}
	if err := s.apply(change); err != nil || snapshot(s) != 2 {
		t.Errorf("index: %v", err)
	}
}
