package sqlsink

import (
	"bytes"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// FuzzFolded has states and changes of any bytes folded: it panics on none, and an error has its
// column.
func FuzzFolded(f *testing.F) {
	filter := new(aggregate.Filter)
	state, _ := filter.MarshalBinary() // it returns no error
	filter.Track()
	var s stored
	for n := range uint64(3) {
		filter.Admit(aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: n + 1, Low: 1},
			aggregate.Lane{byte(n)}, time.UnixMilli(1_700_000_000_000))
		change, _ := filter.Delta().MarshalBinary() // it returns no error
		s = s.with(change)
	}
	after, _, err := folded(state, s.changes)
	if want, _ := filter.MarshalBinary(); err != nil || !bytes.Equal(after, want) {
		f.Fatalf("folded: %x, %v, want %x", after, err, want)
	}
	if again := storedAs(state, s.changes); again.count != 3 {
		f.Fatalf("%d changes", again.count)
	}
	f.Add(state, s.changes)
	f.Add(after, s.changes)
	f.Add(state, []byte{0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, state, changes []byte) {
		_ = storedAs(state, changes)
		if _, column, err := folded(state, changes); err != nil && column == "" {
			t.Fatalf("%v: without a column", err)
		}
	})
}
