package itemstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The binary form of values, in frames and snapshots. It is canonical: equal values have equal
// bytes, and no other bytes are read as them. A value is its kind's byte and then
//
//	S, B        length, bytes
//	N           the ordered form, see appendNumber
//	SS, BS      count, then length and bytes of each, ascending
//	NS          count, then the ordered form of each, ascending
//	L           count, then each value
//	M           count, then length and bytes of each name, ascending, and its value
//	BOOL, NULL  nothing: there are bytes of their own for true and false
//
// with lengths and counts as minimal unsigned varints.
const (
	tagNull byte = iota + 1
	tagFalse
	tagTrue
	tagString
	tagBinary
	tagNumber
	tagStringSet
	tagBinarySet
	tagNumberSet
	tagList
	tagMap
)

// ErrCorrupt is returned for bytes that are no valid encoding.
var ErrCorrupt = errors.New("corrupt item data")

// decodeDepth limits the nesting that a decoder accepts. It exceeds MaxDepth, so that a later,
// stricter MaxDepth never makes stored data unreadable.
const decodeDepth = 4 * MaxDepth

func appendValue(dst []byte, value Value) []byte {
	switch v := value.(type) {
	case Null:
		return append(dst, tagNull)
	case Bool:
		if v {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case String:
		return appendBytes(append(dst, tagString), string(v))
	case Binary:
		return appendBytes(append(dst, tagBinary), string(v))
	case Number:
		return appendNumber(append(dst, tagNumber), v)
	case StringSet:
		return appendTexts(append(dst, tagStringSet), v)
	case BinarySet:
		return appendTexts(append(dst, tagBinarySet), v)
	case NumberSet:
		dst = binary.AppendUvarint(append(dst, tagNumberSet), uint64(len(v)))
		for _, element := range v {
			dst = appendNumber(dst, element)
		}
		return dst
	case List:
		dst = binary.AppendUvarint(append(dst, tagList), uint64(len(v)))
		for _, element := range v {
			dst = appendValue(dst, element)
		}
		return dst
	case Map:
		return appendItem(append(dst, tagMap), v)
	}
	return append(dst, tagNull) // not reached: Value is sealed, and nil values are not stored
}

// appendItem appends a map without its kind's byte.
func appendItem(dst []byte, item Item) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(item)))
	var room [16]string
	names := slices.AppendSeq(room[:0], maps.Keys(item))
	slices.Sort(names)
	for _, name := range names {
		dst = appendValue(appendBytes(dst, name), item[name])
	}
	return dst
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, text := range texts {
		dst = appendBytes(dst, text)
	}
	return dst
}

func appendBytes(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// decoder decodes the output of the append functions. After a fault every read returns zero, and
// err holds the first fault. Decoded strings are parts of the text: they cost no memory of their
// own, and keep the whole text in memory. Clone what outlives it.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrCorrupt, what)
	}
	d.rest = ""
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail("cut short")
		return 0
	}
	first := d.rest[0]
	d.rest = d.rest[1:]
	return first
}

func (d *decoder) uvarint() uint64 {
	value := uint64(0)
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		digit := d.rest[i]
		if i == binary.MaxVarintLen64-1 && digit > 1 || i > 0 && digit == 0 {
			break // it overflows, or is not minimal
		}
		value |= uint64(digit&0x7f) << (7 * i)
		if digit < 0x80 {
			d.rest = d.rest[i+1:]
			return value
		}
	}
	d.fail("bad varint")
	return 0
}

// count reads the number of the following items, each of at least one byte. It refuses a number
// above the rest of the data, so corrupt data cannot ask for excessive memory.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail("count beyond the end")
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	text := d.rest[:n]
	d.rest = d.rest[n:]
	return text
}

func (d *decoder) texts() []string {
	n := d.count()
	texts := make([]string, 0, n)
	for range n {
		text := d.text()
		if len(texts) > 0 && text <= texts[len(texts)-1] {
			d.fail("set out of order")
		}
		texts = append(texts, text)
	}
	if n == 0 {
		d.fail("empty set")
	}
	return texts
}

func (d *decoder) numbers() []Number {
	n := d.count()
	numbers := make([]Number, 0, n)
	for range n {
		number := d.number()
		if len(numbers) > 0 && number.Compare(numbers[len(numbers)-1]) <= 0 {
			d.fail("set out of order")
		}
		numbers = append(numbers, number)
	}
	if n == 0 {
		d.fail("empty set")
	}
	return numbers
}

func (d *decoder) value(depth int) Value {
	if depth > decodeDepth {
		d.fail("nested too deeply")
	}
	switch tag := d.byte(); tag {
	case tagNull:
		return Null{}
	case tagFalse, tagTrue:
		return Bool(tag == tagTrue)
	case tagString:
		return String(d.text())
	case tagBinary:
		return Binary(d.text())
	case tagNumber:
		return d.number()
	case tagStringSet:
		return StringSet(d.texts())
	case tagBinarySet:
		return BinarySet(d.texts())
	case tagNumberSet:
		return NumberSet(d.numbers())
	case tagList:
		n := d.count()
		list := make(List, 0, n)
		for range n {
			list = append(list, d.value(depth+1))
		}
		return list
	case tagMap:
		return d.item(depth)
	default:
		d.fail("unknown kind")
		return Null{}
	}
}

func (d *decoder) item(depth int) Item {
	n := d.count()
	item := make(Item, min(n, 1024)) // a map takes more than a byte of memory per item
	last := ""
	for i := range n {
		name := d.text()
		if i > 0 && name <= last {
			d.fail("names out of order")
		}
		if d.err != nil {
			break
		}
		item[name] = d.value(depth + 1)
		last = name
	}
	return item
}
