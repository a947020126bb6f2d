package aggregate

import (
	"crypto/md5" //nolint:gosec // the format's check sum, not a security measure
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/keyspace"
)

// ErrInvalidPartitionKey is returned for a partition key that is empty or not UTF-8. The KCL would
// replace malformed bytes, and so hash another key.
var ErrInvalidPartitionKey = errors.New("the partition key is empty or not UTF-8")

// Encoder builds aggregates, one after another, and reuses its memory: it allocates nothing for a
// record once its buffers have grown. The same records always give the same bytes. The zero value
// is ready. It is not safe for concurrent use.
type Encoder struct {
	keys     table
	explicit table
	records  []byte
	count    int
}

// table is the aggregate's table of partition keys, or that of explicit hash keys. It has each
// string once.
type table struct {
	names
	fields []byte // as they are in the message
}

// Len returns the number of records since the last Reset.
func (e *Encoder) Len() int { return e.count }

// Size returns the size in bytes of the aggregate that Seal would append now, Overhead included.
func (e *Encoder) Size() int {
	return Overhead + len(e.keys.fields) + len(e.explicit.fields) + len(e.records)
}

// SizeWith returns the exact Size after Add of r, in bytes.
func (e *Encoder) SizeWith(r Record) int {
	return e.Size() + sizeMore(&e.keys.names, &e.explicit.names, r)
}

// Add appends a record and keeps no reference to its bytes. Errors wrap ErrNestedAggregate,
// ErrInvalidPartitionKey or keyspace.ErrKeySyntax (for the explicit hash key), and leave the
// encoder unchanged. Add checks no length: the caller knows the stream's limits.
func (e *Encoder) Add(r Record) error {
	if IsAggregate(r.Data) {
		return ErrNestedAggregate
	}
	if !e.keys.has(r.PartitionKey) && (r.PartitionKey == "" || !utf8.ValidString(r.PartitionKey)) {
		return fmt.Errorf("%w: %q", ErrInvalidPartitionKey, r.PartitionKey)
	}
	if r.ExplicitHashKey != "" && !e.explicit.has(r.ExplicitHashKey) {
		if _, err := keyspace.Parse(r.ExplicitHashKey); err != nil {
			return fmt.Errorf("the explicit hash key: %w", err)
		}
	}
	key := e.keys.add(r.PartitionKey, fieldPartitionKeys)
	entry := sizeEntry(key, r)
	var explicit uint64
	if r.ExplicitHashKey != "" {
		explicit = e.explicit.add(r.ExplicitHashKey, fieldExplicitHashKeys)
		entry += 1 + sizeVarint(explicit)
	}
	e.records = append(e.records, fieldRecords)
	e.records = binary.AppendUvarint(e.records, uint64(entry))
	e.records = append(e.records, fieldPartitionKeyIndex)
	e.records = binary.AppendUvarint(e.records, key)
	if r.ExplicitHashKey != "" {
		e.records = append(e.records, fieldExplicitHashKeyIndex)
		e.records = binary.AppendUvarint(e.records, explicit)
	}
	e.records = appendCounted(e.records, fieldData, r.Data)
	e.records = append(e.records, r.Tags...)
	e.count++
	return nil
}

// Seal appends the aggregate to dst and returns the longer slice. The encoder keeps its records:
// call Reset before the next aggregate.
func (e *Encoder) Seal(dst []byte) []byte {
	dst = append(dst, magic...)
	from := len(dst)
	dst = append(dst, e.keys.fields...)
	dst = append(dst, e.explicit.fields...)
	dst = append(dst, e.records...)
	sum := md5.Sum(dst[from:]) //nolint:gosec // see the import
	return append(dst, sum[:]...)
}

// Reset empties the encoder and keeps its buffers.
func (e *Encoder) Reset() {
	e.keys.reset()
	e.explicit.reset()
	e.records, e.count = e.records[:0], 0
}

func (t *table) add(text string, tag byte) uint64 {
	at, fresh := t.names.add(text)
	if fresh {
		t.fields = appendCounted(t.fields, tag, text)
	}
	return at
}

func (t *table) reset() {
	t.names.reset()
	t.fields = t.fields[:0]
}
