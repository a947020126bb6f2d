package aggregate

import (
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
)

// ErrOutsideShard is wrapped by every OutsideError.
var ErrOutsideShard = errors.New("a user record's hash key is outside of the shard's range")

// OutsideError names the first user record of an aggregate outside the shard's range.
type OutsideError struct {
	Sub   int            // its sub-sequence number
	Hash  keyspace.Key   // its hash key
	Range keyspace.Range // the shard's range
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
// Such an aggregate is void: it was packed for a shard that has been split or merged since. The
// Java KCL drops it as a whole without a report. runnel's producer sends all its user records
// again, under the same unit numbers. So a consumer drops an aggregate with units, does not pass
// it to its Filter, counts it, and goes on behind its position. The KPL sends the user records
// outside the range again, and sometimes those inside, too (seen with 1.1.1, over a split). Other
// producers may send nothing again. See consumer.VoidPolicy.
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

// hash returns a record's hash key. It computes the MD5 of each partition key once.
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
