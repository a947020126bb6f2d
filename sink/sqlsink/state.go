package sqlsink

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/aggregate"
)

// stored is how a row has the reader's state: a whole state, and the changes since. A large state
// is not written with every batch. The database leaves the column alone that has it, and only the
// changes are written anew.
type stored struct {
	some    bool // there is a state
	whole   int  // bytes of the whole state
	changes []byte
	count   int // of the changes
}

// storedAs returns how a row has a state.
func storedAs(state, changes []byte) stored {
	s := stored{some: len(state) > 0, whole: len(state), changes: changes}
	for rest := changes; len(rest) > 0; s.count++ {
		var err error
		if _, rest, err = nextChange(rest); err != nil {
			return s
		}
	}
	return s
}

// with returns the stored form with one more change. The changes are copied: a row's are shared
// with the row.
func (s stored) with(change []byte) stored {
	next := stored{some: s.some, whole: s.whole, count: s.count + 1}
	next.changes = append(next.changes, s.changes...)
	next.changes = binary.AppendUvarint(next.changes, uint64(len(change)))
	next.changes = append(next.changes, change...)
	return next
}

// smallState is the size of a state, in bytes, up to which it is written whole.
const smallState = 1 << 10

// due reports whether the whole state is to be written instead. With n changes of c bytes in all,
// each commit writes c/2 on average, and the whole state of S bytes comes once in n commits. The
// sum is least where n × c is 2 × S.
func (s stored) due() bool {
	return !s.some || s.whole <= smallState || s.count*len(s.changes) >= 2*s.whole
}

var errState = errors.New("it is not as this program writes it")

// nextChange divides the first change off.
func nextChange(changes []byte) (change, rest []byte, err error) {
	n, size := binary.Uvarint(changes)
	if size <= 0 || n > uint64(len(changes)-size) {
		return nil, nil, errState
	}
	rest = changes[size:]
	return rest[:n], rest[n:], nil
}

// folded returns the state after the changes, and with an error the column that has it.
func folded(state, changes []byte) (after []byte, column string, err error) {
	if len(changes) == 0 {
		return state, "", nil
	}
	filter := new(aggregate.Filter)
	if err := filter.UnmarshalBinary(state); err != nil {
		return nil, "state", fmt.Errorf("%w: %w", errState, err)
	}
	for len(changes) > 0 {
		change, rest, err := nextChange(changes)
		if err != nil {
			return nil, "changes", err
		}
		delta := new(aggregate.Delta)
		if err := delta.UnmarshalBinary(change); err != nil {
			return nil, "changes", fmt.Errorf("%w: %w", errState, err)
		}
		filter.Apply(delta)
		changes = rest
	}
	after, _ = filter.MarshalBinary() // it returns no error
	return after, "", nil
}
