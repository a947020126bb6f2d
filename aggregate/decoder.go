package aggregate

import (
	"iter"

	"github.com/runnel-stream/runnel/keyspace"
)

// Decoder opens aggregates, one after another, and reuses its memory. It allocates nothing for a
// user record, and for a partition key only if the previous aggregate had another key at the same
// index.
// The zero value is ready. It is not safe for concurrent use.
type Decoder struct {
	message  []byte
	records  int
	keys     []string
	explicit []explicitKey
	hashes   []keyspace.Key // of keys; valid where hashed is true
	hashed   []bool
}

// explicitKey is an entry of the table of explicit hash keys.
type explicitKey struct {
	text  string
	key   keyspace.Key
	valid bool
}

// maxKept limits the entries of a table whose memory is reused: an entry of two bytes in a message
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

// Open reports whether the data of a Kinesis record is an aggregate. If so, the other methods read
// this aggregate until the next Open. data must not change as long as a record's Data or Tags is
// in use.
//
// Otherwise data is an ordinary record and its own only user record. The rule is the Java KCL's
// (AggregatorUtil.deaggregate). Data is ordinary without the magic number, with at most 16 bytes
// behind it, with a wrong MD5, or with a message that is not an AggregatedRecord. The KCL reads
// the message with protobuf-java: unknown fields are skipped, required ones must be present, the
// last of a repeated one counts, their order is free, and malformed UTF-8 is replaced. An
// aggregate may be empty.
//
// Open differs in one point. If a record has an index outside its table, or an explicit hash key
// that is not a number in [0, 2^128-1], the KCL loses that record, all behind it, and sometimes
// those before it, or throws (KCL 3.5.1 on Java 17, where javax.xml.bind is missing). Open loses
// nothing: it takes such data as an ordinary record.
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
	var keysEnd, explicitEnd uint64 // the least lengths of the tables
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
	// A table may follow the records that use it, so the indices are checked at the end.
	if keysEnd > uint64(len(d.keys)) || explicitEnd > uint64(len(d.explicit)) {
		return false
	}
	return explicitEnd == 0 || d.explicitValid(message)
}

// explicitValid reports whether every explicit hash key that a record uses is valid.
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

// addKey adds b to the table. It reuses the previous aggregate's string at this index if equal.
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

// Records yields every user record with its sub-sequence number, from 0 on. Do not call Open
// during the loop.
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

// AppendRecords appends every user record to dst, in the order of their sub-sequence numbers.
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

// parseEntry reads a Record message. Of an index only the low 32 bits count: the KCL casts it.
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

// entries yields the Record messages of a message that scan has accepted.
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
