package itemstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// A frame is a version byte and the changes of one decision, in order. The store applies all of
// them or none. The version grows when a change gets a new form, so that an older binary refuses
// the frame instead of misreading it. A frame has the lowest version that can express its
// changes:
//
//	1  tables and items
//	2  tables with indexes or recovery; tokens of transactions
const (
	frameVersion byte = 1
	frameNewest  byte = 2
)

// The changes. Each begins with its byte and the table's number as a varint.
const (
	changeCreate byte = iota + 1 // the Meta as JSON, after its length
	changeDrop                   // empty
	changeAlter                  // the Meta as JSON, after its length
	changePut                    // the item, as appendItem writes it
	changeDelete                 // the partition key's value; 0, or 1 and the sort key's value
	changeToken                  // for table 0: the token, see appendTokenBody
)

func newFrame(dst []byte) []byte { return append(dst[:0], frameVersion) }

func appendChange(dst []byte, change byte, table uint64) []byte {
	return binary.AppendUvarint(append(dst, change), table)
}

func appendMeta(dst []byte, change byte, table uint64, meta *Meta) ([]byte, error) {
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("encode table %s: %w", meta.Name, err)
	}
	if meta.young() {
		dst[0] = frameNewest
	}
	return appendBytes(appendChange(dst, change, table), string(text)), nil
}

func appendToken(dst []byte, token Token) []byte {
	dst[0] = frameNewest
	return appendTokenBody(appendChange(dst, changeToken, 0), token)
}

// appendPut appends the put of an item by its encoding.
func appendPut(dst []byte, table uint64, body string) []byte {
	return append(appendChange(dst, changePut, table), body...)
}

func appendDelete(dst []byte, table uint64, key Key) []byte {
	dst = appendValue(appendChange(dst, changeDelete, table), key.Hash)
	if key.Range == nil {
		return append(dst, 0)
	}
	return appendValue(append(dst, 1), key.Range)
}

// change is a decoded change of a frame.
type change struct {
	op    byte
	table uint64
	meta  *Meta  // create, alter
	item  Item   // put
	body  string // put: the item's encoding
	key   Key    // delete
	token Token  // token
}

// decodeFrame calls apply for each change, in order, until one fails.
func decodeFrame(payload []byte, apply func(change) error) error {
	d := &decoder{rest: string(payload)}
	version := d.byte()
	if d.err == nil && (version < frameVersion || version > frameNewest) {
		return fmt.Errorf("%w: frame of version %d, this program knows %d",
			ErrCorrupt, version, frameNewest)
	}
	for len(d.rest) > 0 {
		c := d.change()
		if d.err != nil {
			return d.err
		}
		if err := apply(c); err != nil {
			return err
		}
	}
	return d.err
}

func (d *decoder) change() change {
	c := change{op: d.byte(), table: d.uvarint()}
	switch c.op {
	case changeCreate, changeAlter:
		c.meta = d.meta()
	case changeDrop:
	case changePut:
		c.item, c.body = d.encoded()
	case changeDelete:
		c.key.Hash = d.value(0)
		switch d.byte() {
		case 0:
		case 1:
			c.key.Range = d.value(0)
		default:
			d.fail("bad sort key mark")
		}
	case changeToken:
		c.token = d.token()
	default:
		d.fail("unknown change")
	}
	return c
}

// encoded returns an item, and its encoding.
func (d *decoder) encoded() (Item, string) {
	text := d.rest
	item := d.item(0)
	return item, text[:len(text)-len(d.rest)]
}

func (d *decoder) meta() *Meta {
	meta := new(Meta)
	if err := json.Unmarshal([]byte(d.text()), meta); err != nil && d.err == nil {
		d.fail("table description: " + err.Error())
	}
	return meta
}
