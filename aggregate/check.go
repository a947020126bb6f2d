package aggregate

import (
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
)

// ErrOutsideShard is what an OutsideError is.
var ErrOutsideShard = errors.New("a user record's hash key is outside of the shard's range")

// OutsideError says which user record of an aggregate is not the shard's.
type OutsideError struct {
	Sub   int          // its sub-sequence number: the first such one
	Hash  keyspace.Key // its hash key
	Range keyspace.Range
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s: user record %d has %s, the shard %s",
		ErrOutsideShard, e.Sub, e.Hash, e.Range)
}

// Unwrap returns ErrOutsideShard.
func (e *OutsideError) Unwrap() error { return ErrOutsideShard }

// Check returns an *OutsideError if a user record's hash key is outside of the shard's range,
// and nil if all are inside.
//
// Such an aggregate was packed for a shard that has been split or merged since. The Java KCL
// drops it as a whole and says nothing; its producer sends the user records again. So does
// runnel's, all of them and under the same unit numbers: a consumer drops the whole aggregate,
// leaves its Filter as it is, passes its position and counts it. The KPL was seen to send user
// records inside the range again too (1.1.1, over a split), so a consumer that delivers those of
// a void aggregate, by Record.Hash, may have doubles.
func (d *Decoder) Check(shard keyspace.Range) error {
	if shard == keyspace.All() {
		return nil
	}
	sub := 0
	for e := range entries(d.message) {
		if hash := d.hash(&e); !shard.Contains(hash) {
			return &OutsideError{Sub: sub, Hash: hash, Range: shard}
		}
		sub++
	}
	return nil
}

// hash returns a record's hash key; every partition key is hashed once.
func (d *Decoder) hash(e *entry) keyspace.Key {
	if e.hasExplicit {
		return d.explicit[e.explicit].key
	}
	for len(d.hashed) < len(d.keys) {
		d.hashed, d.hashes = append(d.hashed, false), append(d.hashes, keyspace.Key{})
	}
	if !d.hashed[e.key] {
		d.hashes[e.key], d.hashed[e.key] = keyspace.Of(d.keys[e.key]), true
	}
	return d.hashes[e.key]
}
