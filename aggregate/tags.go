package aggregate

import (
	"encoding/binary"
	"iter"
)

// Tags is a list of tags in the format's encoding, ready for a copy into a record. The empty list
// is nil. Build a list by Append. The tags of a Decoder's record view its input, and may include
// unknown fields, which All skips.
type Tags []byte

// Append appends a tag and returns the longer list, as the built-in append does.
func (t Tags) Append(key, value string) Tags { return appendTag(t, key, value) }

func appendTag[T string | []byte](t Tags, key string, value T) Tags {
	size := sizeCounted(len(key)) + sizeCounted(len(value))
	t = append(t, fieldTags)
	t = binary.AppendUvarint(t, uint64(size))
	t = appendCounted(t, fieldTagKey, key)
	return appendCounted(t, fieldTagValue, value)
}

// All yields each tag's key and value, as views; the value is nil if the tag has none. It stops at
// malformed bytes, which a Decoder never returns.
func (t Tags) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for rest := []byte(t); len(rest) > 0; {
			f, after, ok := next(rest, 1)
			if !ok {
				return
			}
			rest = after
			if f.tag != fieldTags {
				continue
			}
			key, value, ok := parseTag(f.bytes)
			if !ok || !yield(key, value) {
				return
			}
		}
	}
}

// parseTag reads a Tag message. The last one of a repeated field counts; the key is required.
func parseTag(message []byte) (key, value []byte, ok bool) {
	for len(message) > 0 {
		var f field
		if f, message, ok = next(message, 2); !ok {
			return nil, nil, false
		}
		switch f.tag {
		case fieldTagKey:
			key = f.bytes
		case fieldTagValue:
			value = f.bytes
		}
	}
	return key, value, key != nil
}
