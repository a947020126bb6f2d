package aggregate

import (
	"crypto/md5" //nolint:gosec // the format's check sum, not a security measure
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/keyspace"
)

// ErrPartitionKey is returned for a partition key that is empty or not UTF-8. The KCL would
// replace malformed bytes, and so hash another key.
var ErrPartitionKey = errors.New("the partition key is empty or not UTF-8")

// Encoder builds aggregates, one after another, and reuses its memory: it allocates nothing for a
// record once its buffers have grown. The same records always give the same bytes. The zero value
// is ready. It is not safe for concurrent use.
type Encoder struct {
	keys     table
	explicit table
	records  []byte
	count    int
}

// table is one of the two tables of strings, each string once.
type table struct {
	fields []byte // as encoded in the message
	index  map[string]uint64
	last   string // a cache: most records have their predecessor's key
	at     uint64
}

// Len returns the number of records since the last Reset.
func (e *Encoder) Len() int { return e.count }

// Size returns the size in bytes of the aggregate that Seal would append now, Overhead included.
func (e *Encoder) Size() int {
	return Overhead + len(e.keys.fields) + len(e.explicit.fields) + len(e.records)
}

// SizeWith returns the exact Size after Add of r, in bytes.
func (e *Encoder) SizeWith(r Record) int {
	key, size := e.keys.sizeWith(r.PartitionKey)
	entry := 1 + sizeVarint(key) + sizeCounted(len(r.Data)) + len(r.Tags)
	if r.ExplicitHashKey != "" {
		at, more := e.explicit.sizeWith(r.ExplicitHashKey)
		size += more
		entry += 1 + sizeVarint(at)
	}
	return e.Size() + size + sizeCounted(entry)
}

// SizeOf returns the size in bytes of an aggregate of r alone. Kinesis's limit on a record also
// counts the outer partition key, which is not included.
func SizeOf(r Record) int {
	var e Encoder
	return e.SizeWith(r)
}

// Add appends a record and keeps no reference to its bytes. Errors wrap ErrNested,
// ErrPartitionKey or keyspace.ErrKeySyntax (for the explicit hash key), and leave the encoder
// unchanged. Add checks no length: the caller knows the stream's limits.
func (e *Encoder) Add(r Record) error {
	if IsAggregate(r.Data) {
		return ErrNested
	}
	if !e.keys.has(r.PartitionKey) && (r.PartitionKey == "" || !utf8.ValidString(r.PartitionKey)) {
		return fmt.Errorf("%w: %q", ErrPartitionKey, r.PartitionKey)
	}
	if r.ExplicitHashKey != "" && !e.explicit.has(r.ExplicitHashKey) {
		if _, err := keyspace.Parse(r.ExplicitHashKey); err != nil {
			return fmt.Errorf("the explicit hash key: %w", err)
		}
	}
	key := e.keys.add(r.PartitionKey, fieldPartitionKeys)
	entry := 1 + sizeVarint(key) + sizeCounted(len(r.Data)) + len(r.Tags)
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

func (t *table) has(text string) bool {
	if t.last == text && t.last != "" {
		return true
	}
	_, found := t.index[text]
	return found
}

// sizeWith returns the index that text has or would get, and the bytes that its addition takes.
func (t *table) sizeWith(text string) (at uint64, size int) {
	if t.last == text && t.last != "" {
		return t.at, 0
	}
	if at, found := t.index[text]; found {
		return at, 0
	}
	return uint64(len(t.index)), sizeCounted(len(text))
}

func (t *table) add(text string, tag byte) uint64 {
	if t.last == text && t.last != "" {
		return t.at
	}
	at, found := t.index[text]
	if !found {
		if t.index == nil {
			t.index = map[string]uint64{}
		}
		at = uint64(len(t.index))
		t.index[text] = at
		t.fields = appendCounted(t.fields, tag, text)
	}
	t.last, t.at = text, at
	return at
}

func (t *table) reset() {
	t.fields, t.last, t.at = t.fields[:0], "", 0
	clear(t.index)
}
