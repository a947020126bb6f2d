package kinesis

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// iteratorLife is the lifetime of a shard iterator, in ms (AWS, "GetShardIterator": "expires 5
// minutes after it is returned to the requester"). It may be used any number of times.
const iteratorLife = 300_000

// iteratorVersion is the first byte of a sealed iterator.
const iteratorVersion = 1

// iterator is the content of a ShardIterator: a stream with its creation (since names are used
// again), a shard, and the place of the next record (shardlog.Shard.Place). A place stays valid
// after a restart on the same data directory. A place before the oldest record reads from the
// oldest.
type iterator struct {
	issued  int64 // elapsed ms
	created int64 // of the stream, ms since 1970
	shard   uint32
	place   uint64
	stream  string
}

// appendBinary appends the iterator's plain form: the version, four varints, the name. That is at
// most 36 bytes and the name.
func (it iterator) appendBinary(dst []byte) []byte {
	dst = append(dst, iteratorVersion)
	dst = binary.AppendVarint(dst, it.issued)
	dst = binary.AppendVarint(dst, it.created)
	dst = binary.AppendUvarint(dst, uint64(it.shard))
	dst = binary.AppendUvarint(dst, it.place)
	return append(dst, it.stream...)
}

// iteratorMark begins the bytes of every iterator at AWS (kinesalite, db/index.js).
const iteratorMark = "\x00\x00\x00\x00\x00\x00\x00\x01"

// plainSize is the length of the plain form with its padding. AWS's iterators have 152 bytes, and
// 16 more for each 16 characters of the stream's name (kinesalite, db/index.js): so many that each
// plain form has room. A name of 128 characters gives 376 characters of base64; the model allows
// 512.
func plainSize(stream string) int {
	const least = 152
	return least + (len(stream)+2)/16*16 - len(iteratorMark) - sealOverhead
}

// parseIterator reads the output of appendBinary, with padding of zeros or without: no name has a
// zero.
func parseIterator(data []byte) (it iterator, ok bool) {
	if len(data) == 0 || data[0] != iteratorVersion {
		return it, false
	}
	data = data[1:]
	ok = true
	signed := func() int64 {
		value, n := binary.Varint(data)
		ok = ok && n > 0
		data = data[max(n, 0):]
		return value
	}
	unsigned := func() uint64 {
		value, n := binary.Uvarint(data)
		ok = ok && n > 0
		data = data[max(n, 0):]
		return value
	}
	it.issued, it.created = signed(), signed()
	shard := unsigned()
	it.place = unsigned()
	it.shard, it.stream = uint32(shard), string(bytes.TrimRight(data, "\x00"))
	ok = ok && shard <= shardid.Max && catalogue.IsName(it.stream)
	return it, ok
}

// sealIterator returns the ShardIterator.
func (s *sealer) sealIterator(world wire.World, it iterator) string {
	var space [256]byte
	plain := it.appendBinary(space[:0])
	return s.seal(sealIterator, world, space[:max(len(plain), plainSize(it.stream))])
}

// openIterator reads a ShardIterator, whatever its age. AWS takes one in double quotes, too.
func (s *sealer) openIterator(world wire.World, token string) (iterator, error) {
	if len(token) > 2 && strings.HasPrefix(token, `"`) && strings.HasSuffix(token, `"`) {
		token = token[1 : len(token)-1]
	}
	if data, ok := s.open(sealIterator, world, token); ok {
		if it, ok := parseIterator(data); ok {
			return it, nil
		}
	}
	return iterator{}, invalid("Invalid ShardIterator.")
}
