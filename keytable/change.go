package keytable

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// The operations of a change.
const (
	opAssign  = "assign"  // Name gets Key
	opRelease = "release" // Name and its keys are free
	opMoving  = "moving"  // Name starts to move to Key, which is taken from now on
	opMoved   = "moved"   // Name has its new key, and the old one is free
	opAbort   = "abort"   // Name keeps its old key, and the new one is free
)

// change is one step of the table's log.
type change struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`  // of assign and moving, in decimal
	Rate uint64 `json:"rate,omitempty"` // of assign
}

// row is the state of a name in the table.
type row struct {
	Key   keyspace.Key
	Rate  uint64
	To    *keyspace.Key // the new key during a move, else nil
	Since int64         // the version of its last change
}

// keys returns the keys that the row occupies.
func (r row) keys() []allocate.Rated {
	keys := []allocate.Rated{{Key: r.Key, Rate: r.Rate}}
	if r.To != nil {
		keys = append(keys, allocate.Rated{Key: *r.To, Rate: r.Rate})
	}
	return keys
}

// apply returns the row of the name after the change; nil means no row. A change that the row
// already has, or that does not fit, has no effect. So a log may be applied again to rows that were
// read while it grew.
func (c change) apply(before *row, version int64) *row {
	if before != nil && before.Since >= version {
		return before
	}
	key, _ := keyspace.Parse(c.Key) // decodeChanges has parsed it
	if before == nil {
		if c.Op == opAssign {
			return &row{Key: key, Rate: c.Rate, Since: version}
		}
		return nil
	}
	after := &row{Key: before.Key, Rate: before.Rate, Since: version}
	switch {
	case c.Op == opRelease:
		return nil
	case c.Op == opMoving:
		after.To = &key
	case c.Op == opMoved && before.To != nil:
		after.Key = *before.To
	case c.Op == opAbort && before.To != nil:
	default:
		return before
	}
	return after
}

// ErrDamagedTable is wrapped by errors about content that this package does not write.
var ErrDamagedTable = errors.New("the table of names and keys is damaged")

func encodeChanges(changes []change) (string, error) {
	text, err := json.Marshal(changes)
	return string(text), err
}

// decodeChanges reads the changes of a log row. The errors wrap ErrDamagedTable.
func decodeChanges(text string) ([]change, error) {
	var changes []change
	if err := json.Unmarshal([]byte(text), &changes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamagedTable, err)
	}
	for _, c := range changes {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamagedTable, err)
		}
	}
	return changes, nil
}

func (c change) check() error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	switch c.Op {
	case opAssign, opMoving:
		_, err := keyspace.Parse(c.Key)
		return err
	case opRelease, opMoved, opAbort:
		return nil
	}
	return fmt.Errorf("a change %q, which is not known", c.Op)
}

// ErrInvalidName is wrapped by errors about names that cannot be partition keys. A name has 1 to
// 256 characters of valid UTF-8.
var ErrInvalidName = errors.New("not a name: want 1 to 256 characters of UTF-8")

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 256 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %.40q", ErrInvalidName, name)
	}
	return nil
}
