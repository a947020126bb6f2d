package aggregate

// Sizer computes the size of an aggregate before an Encoder makes it, and copies no data. So a
// program can choose the records of an aggregate in one place and encode them in another. The zero
// value is ready. It is not safe for concurrent use.
type Sizer struct {
	keys     names
	explicit names
	records  int // bytes
}

// Size returns the size in bytes of an aggregate of the records since the last Reset.
func (s *Sizer) Size() int { return Overhead + s.keys.size + s.explicit.size + s.records }

// SizeWith returns the exact Size after Add of r, in bytes.
func (s *Sizer) SizeWith(r Record) int { return s.Size() + sizeMore(&s.keys, &s.explicit, r) }

// Add counts a record. It checks nothing: Encoder.Add returns the errors of a record.
func (s *Sizer) Add(r Record) {
	key, _ := s.keys.add(r.PartitionKey)
	entry := sizeEntry(key, r)
	if r.ExplicitHashKey != "" {
		at, _ := s.explicit.add(r.ExplicitHashKey)
		entry += 1 + sizeVarint(at)
	}
	s.records += sizeCounted(entry)
}

// Reset empties the sizer and keeps its memory.
func (s *Sizer) Reset() {
	s.keys.reset()
	s.explicit.reset()
	s.records = 0
}

// SizeOf returns the size in bytes of an aggregate of r alone. Kinesis's limit on a record also
// counts the outer partition key, which is not included.
func SizeOf(r Record) int {
	var s Sizer
	return s.SizeWith(r)
}

// sizeMore returns the bytes that r adds to an aggregate with these tables.
func sizeMore(keys, explicit *names, r Record) int {
	key, size := keys.sizeWith(r.PartitionKey)
	entry := sizeEntry(key, r)
	if r.ExplicitHashKey != "" {
		at, more := explicit.sizeWith(r.ExplicitHashKey)
		size += more
		entry += 1 + sizeVarint(at)
	}
	return size + sizeCounted(entry)
}

// sizeEntry returns the size of a record's message without an explicit hash key.
func sizeEntry(key uint64, r Record) int {
	return 1 + sizeVarint(key) + sizeCounted(len(r.Data)) + len(r.Tags)
}

// names gives each string of a table its index.
type names struct {
	index map[string]uint64
	size  int    // of the strings' fields in the message
	last  string // a cache: most records have their predecessor's key
	at    uint64
}

func (n *names) has(text string) bool {
	if n.last == text && n.last != "" {
		return true
	}
	_, found := n.index[text]
	return found
}

// sizeWith returns the index that text has or would get, and the bytes that its addition takes.
func (n *names) sizeWith(text string) (at uint64, size int) {
	if n.last == text && n.last != "" {
		return n.at, 0
	}
	if at, found := n.index[text]; found {
		return at, 0
	}
	return uint64(len(n.index)), sizeCounted(len(text))
}

// add returns the index of text, and whether it is new.
func (n *names) add(text string) (at uint64, fresh bool) {
	if n.last == text && n.last != "" {
		return n.at, false
	}
	at, found := n.index[text]
	if !found {
		if n.index == nil {
			n.index = map[string]uint64{}
		}
		at = uint64(len(n.index))
		n.index[text] = at
		n.size += sizeCounted(len(text))
	}
	n.last, n.at = text, at
	return at, !found
}

func (n *names) reset() {
	n.size, n.last, n.at = 0, "", 0
	clear(n.index)
}
