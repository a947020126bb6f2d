package archive

import (
	"fmt"
	"math"

	"github.com/runnel-stream/runnel"
)

// ledger compares the archive's records, parents before children, with the source. It takes about
// 100 bytes for a record of the source and as much for a key, beside their texts.
type ledger struct {
	report   *SourceReport
	examples int
	lineage  *lineage

	index   map[string]uint32 // an id's record of the source
	records []sourceEntry
	keys    map[string]uint32
	keyed   []keyEntry
}

type sourceEntry struct {
	id    string
	key   uint32
	line  uint32 // 0 if it is unknown, or beyond the type
	found bool
}

// keyEntry is the progress of the comparison for one key.
type keyEntry struct {
	name   string
	last   uint32 // the furthest record of the source, plus one
	shard  int32  // the shard of that record in the archive
	broken bool
}

func newLedger(report *SourceReport, examples int) *ledger {
	return &ledger{
		report: report, examples: examples,
		index: map[string]uint32{}, keys: map[string]uint32{},
	}
}

// expect adds the next record of the source. A repeated id is an error: with it, a double of one
// record would hide the loss of the other.
func (l *ledger) expect(record SourceRecord, ordered bool) error {
	if len(l.records) == math.MaxUint32-1 {
		return fmt.Errorf("%w: it has more than %d records", ErrUnusableSource, len(l.records))
	}
	n := uint32(len(l.records))
	if first, again := l.index[record.ID]; again {
		return l.repeated(record, first)
	}
	entry := sourceEntry{id: record.ID}
	if record.Line <= math.MaxUint32 {
		entry.line = uint32(record.Line)
	}
	l.index[record.ID] = n
	if ordered {
		key, known := l.keys[record.Key]
		if !known {
			key = uint32(len(l.keyed))
			l.keys[record.Key] = key
			l.keyed = append(l.keyed, keyEntry{name: record.Key})
		}
		entry.key = key
	}
	l.records = append(l.records, entry)
	return nil
}

// repeated returns the error for a record with the id of an earlier one, which is record first of
// the source.
func (l *ledger) repeated(record SourceRecord, first uint32) error {
	at, before := fmt.Sprintf("record %d", len(l.records)+1), fmt.Sprintf("record %d", first+1)
	if line := l.records[first].line; line > 0 {
		at, before = fmt.Sprintf("line %d", record.Line), fmt.Sprintf("line %d", line)
	}
	if l.report.Name != "" {
		at = l.report.Name + ", " + at
	}
	return fmt.Errorf("%w: %s: the id %s is on %s as well: an id names one record; choose another "+
		"field with --id", ErrUnusableSource, at, record.ID, before)
}

// see checks the next record of the archive. ok is false if it has no id. placed is false for a
// record that comes behind later ones of its shard; the report counts that as disorder of the
// shard.
func (l *ledger) see(shard int, id string, ok, placed bool, at runnel.Position) {
	name := l.lineage.names[shard]
	if !ok {
		l.report.Unknown.add(l.examples, "a record without an id at %s %s", name, at)
		return
	}
	n, ok := l.index[id]
	if !ok {
		l.report.Unknown.add(l.examples, "id %s at %s %s", id, name, at)
		return
	}
	if l.records[n].found {
		l.report.Doubled.add(l.examples, "id %s, again at %s %s", id, name, at)
		return
	}
	l.report.found++
	l.records[n].found = true
	if placed && len(l.keyed) > 0 {
		l.order(n, shard, at)
	}
}

// order compares a first occurrence with the record of its key that is furthest in the source.
func (l *ledger) order(n uint32, shard int, at runnel.Position) {
	key := &l.keyed[l.records[n].key]
	name := l.lineage.names[shard]
	switch {
	case key.last == 0 || n+1 > key.last && l.lineage.follows(shard, int(key.shard)):
		key.last, key.shard = n+1, int32(shard)
		return
	case n+1 <= key.last:
		l.report.OutOfOrder.add(l.examples, "key %s: id %s, record %d of the source, at %s %s "+
			"stands behind id %s, record %d", key.name, l.records[n].id, n+1, name, at,
			l.records[key.last-1].id, key.last)
	default:
		l.report.OutOfOrder.add(l.examples, "key %s: id %s at %s %s and id %s in %s, which does "+
			"not come before that shard", key.name, l.records[n].id, name, at,
			l.records[key.last-1].id, l.lineage.names[key.shard])
		key.last, key.shard = n+1, int32(shard)
	}
	if !key.broken {
		key.broken = true
		l.report.KeysOutOfOrder++
	}
}

// close counts the records that were not seen.
func (l *ledger) close() {
	l.report.Records, l.report.Keys = int64(len(l.records)), int64(len(l.keyed))
	for n := range l.records {
		entry := &l.records[n]
		switch {
		case entry.found:
		case len(l.keyed) > 0:
			l.report.Missing.add(l.examples, "id %s, record %d of the source, key %s", entry.id,
				n+1, l.keyed[entry.key].name)
		default:
			l.report.Missing.add(l.examples, "id %s, record %d of the source", entry.id, n+1)
		}
	}
}

// lineage holds the order of the shards: which come before which.
type lineage struct {
	names   []runnel.ShardID
	parents [][]int
	known   map[[2]int]bool
}

func newLineage(chains []Chain) *lineage {
	l := &lineage{known: map[[2]int]bool{}, parents: make([][]int, len(chains))}
	place := map[runnel.ShardID]int{}
	for i, chain := range chains { // parents first
		l.names = append(l.names, chain.ShardID)
		for _, parent := range chain.Parents {
			if at, there := place[parent.ShardID]; there {
				l.parents[i] = append(l.parents[i], at)
			}
		}
		place[chain.ShardID] = i
	}
	return l
}

// follows reports whether shard is other, or a descendant of it.
func (l *lineage) follows(shard, other int) bool {
	if shard == other {
		return true
	}
	if shard < other { // parents come first
		return false
	}
	pair := [2]int{shard, other}
	if known, asked := l.known[pair]; asked {
		return known
	}
	found := false
	for _, parent := range l.parents[shard] {
		found = found || l.follows(parent, other)
	}
	l.known[pair] = found
	return found
}
