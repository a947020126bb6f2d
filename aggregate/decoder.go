package aggregate

import (
	"iter"

	"github.com/runnel-stream/runnel/keyspace"
)

// Decoder opens aggregates, one after another, and reuses its memory: nothing is allocated for
// a user record, and for a partition key only if the aggregate before had another in its place.
// The zero value is ready. It is not safe for concurrent use.
type Decoder struct {
	message  []byte
	records  int
	keys     []string
	explicit []explicitKey
	hashes   []keyspace.Key // of keys, as far as hashed says
	hashed   []bool
}

// explicitKey is an entry of the table of explicit hash keys.
type explicitKey struct {
	text  string
	key   keyspace.Key
	valid bool
}

// maxKept is how many entries of a table are kept for the next aggregate: an entry of two bytes
// takes sixteen here.
const maxKept = 1 << 16

// Decode appends the user records of a Kinesis record's data to dst, in order. The user record
// at i has sub-sequence number i. ok is false if data is an ordinary record; see Decoder.Open.
// The records' Data and Tags view data.
func Decode(dst []Record, data []byte) (records []Record, ok bool) {
	var d Decoder
	if !d.Open(data) {
		return dst, false
	}
	return d.AppendRecords(dst), true
}

// Open reports whether the data of a Kinesis record is an aggregate, and if so, makes it the
// one that the other methods speak of, until the next Open. data must stay as it is for as long
// as a record's Data or Tags is in use.
//
// If it is not, data is an ordinary record and its own only user record, as the Java KCL
// decides (AggregatorUtil.deaggregate): without the magic number, with 16 bytes behind it or
// fewer, with another MD5, or with a message that is not an AggregatedRecord. The KCL reads it
// with protobuf-java: unknown fields are skipped, required ones must be there, of a repeated one
// the last counts, the order is free, and what is not UTF-8 is replaced. An aggregate may be
// empty.
//
// In one point Open differs. Where a record has an index outside of its table, or an explicit
// hash key that is no number in [0, 2^128-1], the KCL loses that record, all behind it, and
// sometimes those before it, or throws (KCL 3.5.1 on Java 17, for want of javax.xml.bind). Here
// nothing is lost: such data is an ordinary record.
func (d *Decoder) Open(data []byte) bool {
	d.reset()
	message, ok := unwrap(data)
	if !ok || !d.scan(message) {
		d.reset()
		return false
	}
	d.message = message
	return true
}

func (d *Decoder) reset() {
	d.message, d.records = nil, 0
	d.keys, d.explicit = d.keys[:0], d.explicit[:0]
	d.hashes, d.hashed = d.hashes[:0], d.hashed[:0]
	if cap(d.keys) > maxKept {
		d.keys, d.hashes, d.hashed = nil, nil, nil
	}
	if cap(d.explicit) > maxKept {
		d.explicit = nil
	}
}

// scan reads the tables and checks every record.
func (d *Decoder) scan(message []byte) bool {
	var keysEnd, explicitEnd uint64 // how long the tables must be
	for rest := message; len(rest) > 0; {
		f, after, ok := next(rest, 0)
		if !ok {
			return false
		}
		rest = after
		switch f.tag {
		case fieldPartitionKeys:
			d.addKey(f.bytes)
		case fieldExplicitHashKeys:
			d.addExplicit(f.bytes)
		case fieldRecords:
			e, ok := parseEntry(f.bytes)
			if !ok {
				return false
			}
			d.records++
			keysEnd = max(keysEnd, uint64(e.key)+1)
			if e.hasExplicit {
				explicitEnd = max(explicitEnd, uint64(e.explicit)+1)
			}
		}
	}
	// A table may stand behind the records that use it, so their indices are compared here.
	if keysEnd > uint64(len(d.keys)) || explicitEnd > uint64(len(d.explicit)) {
		return false
	}
	return explicitEnd == 0 || d.explicitValid(message)
}

// explicitValid reports whether every explicit hash key that a record uses is one.
func (d *Decoder) explicitValid(message []byte) bool {
	all := true
	for i := range d.explicit {
		all = all && d.explicit[i].valid
	}
	if all {
		return true
	}
	for e := range entries(message) {
		if e.hasExplicit && !d.explicit[e.explicit].valid {
			return false
		}
	}
	return true
}

// addKey adds b to the table, as the string that stood in its place before if it is the same.
func (d *Decoder) addKey(b []byte) {
	at := len(d.keys)
	if at < cap(d.keys) {
		if before := d.keys[:at+1][at]; before == string(b) {
			d.keys = d.keys[:at+1]
			return
		}
	}
	d.keys = append(d.keys, text(b))
}

func (d *Decoder) addExplicit(b []byte) {
	at := len(d.explicit)
	if at < cap(d.explicit) {
		if before := d.explicit[:at+1][at]; before.text == string(b) {
			d.explicit = d.explicit[:at+1]
			return
		}
	}
	entry := explicitKey{text: text(b)}
	entry.key, entry.valid = parseExplicit(entry.text)
	d.explicit = append(d.explicit, entry)
}

// Len returns the number of user records.
func (d *Decoder) Len() int { return d.records }

// Records yields every user record with its sub-sequence number, from 0 on. Nothing may be
// opened meanwhile.
func (d *Decoder) Records() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		sub := 0
		for e := range entries(d.message) {
			if !yield(sub, d.record(&e)) {
				return
			}
			sub++
		}
	}
}

// AppendRecords appends every user record to dst. The user record at i of what is appended has
// sub-sequence number i.
func (d *Decoder) AppendRecords(dst []Record) []Record {
	for e := range entries(d.message) {
		dst = append(dst, d.record(&e))
	}
	return dst
}

func (d *Decoder) record(e *entry) Record {
	r := Record{PartitionKey: d.keys[e.key], Data: e.data, Tags: e.tags}
	if e.hasExplicit {
		r.ExplicitHashKey = d.explicit[e.explicit].text
	}
	return r
}

// entry is a Record message: its indices, not yet looked up, and views of the rest.
type entry struct {
	key, explicit uint32
	hasExplicit   bool
	data          []byte
	tags          Tags
}

// parseEntry reads a Record message. The low 32 bits of an index count, as the KCL casts it.
func parseEntry(message []byte) (e entry, ok bool) {
	var hasKey bool
	tagsFrom, tagsTo := -1, 0
	for rest := message; len(rest) > 0; {
		f, after, ok := next(rest, 1)
		if !ok {
			return e, false
		}
		switch f.tag {
		case fieldPartitionKeyIndex:
			e.key, hasKey = uint32(f.number), true
		case fieldExplicitHashKeyIndex:
			e.explicit, e.hasExplicit = uint32(f.number), true
		case fieldData:
			e.data = f.bytes
		case fieldTags:
			if _, _, ok := parseTag(f.bytes); !ok {
				return e, false
			}
			if tagsFrom < 0 {
				tagsFrom = len(message) - len(rest)
			}
			tagsTo = len(message) - len(after)
		}
		rest = after
	}
	if tagsFrom >= 0 {
		e.tags = message[tagsFrom:tagsTo:tagsTo]
	}
	return e, hasKey && e.data != nil
}

// entries yields the Record messages of a message that has been scanned.
func entries(message []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for rest := message; len(rest) > 0; {
			f, after, _ := next(rest, 0)
			rest = after
			if f.tag != fieldRecords {
				continue
			}
			if e, _ := parseEntry(f.bytes); !yield(e) {
				return
			}
		}
	}
}
