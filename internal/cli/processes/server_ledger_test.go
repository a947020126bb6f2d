package processes_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// place is a record's shard and number. A shard is named with its stream, as in
// "events/shardId-000000000000".
type place struct{ shard, number string }

// entry is a record of a shard: its number, and the name from which its content is made.
type entry struct{ number, id string }

// ledger holds the answers to writers, and the records that readers have seen.
type ledger struct {
	t  *testing.T
	mu sync.Mutex
	// attempts counts, by a record's name, the calls that have stored it or may have: those
	// that were acknowledged, had no answer, or are under way.
	attempts     map[string]int
	acknowledged map[place]string
	newest       map[string]string // by shard, the highest number that was acknowledged
	tapes        []*tape
	unanswered   int
}

// tape holds the records that one reader has seen of a shard, from the oldest on.
type tape struct {
	shard   string
	entries []entry
	ended   bool // the reader got the end of the shard
}

func newLedger(t *testing.T) *ledger {
	return &ledger{
		t: t, attempts: map[string]int{}, acknowledged: map[place]string{},
		newest: map[string]string{},
	}
}

// begin notes an attempt to store records, and returns each shard's newest record: those that
// the attempt stores get higher numbers.
func (l *ledger) begin(ids []string) (before map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.attempts[id]++
	}
	return maps.Clone(l.newest)
}

// end notes the outcome of an attempt. A refused one has stored nothing.
func (l *ledger) end(ids []string, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o == unanswered {
		l.unanswered += len(ids)
		return
	}
	for _, id := range ids {
		l.attempts[id]--
	}
}

// acknowledge notes the place of a record of an attempt.
func (l *ledger) acknowledge(id string, at place, before map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, twice := l.acknowledged[at]; twice {
		l.t.Errorf("%v was acknowledged to %s and to %s", at, other, id)
	}
	if compare(at.number, before[at.shard]) <= 0 {
		l.t.Errorf("%s got %v after %s was acknowledged", id, at, before[at.shard])
	}
	l.acknowledged[at] = id
	if compare(at.number, l.newest[at.shard]) > 0 {
		l.newest[at.shard] = at.number
	}
}

// compare orders sequence numbers. "" is below all.
func compare(a, b string) int {
	return nouns.SequenceNumber(a).Compare(nouns.SequenceNumber(b))
}

// tape makes a reader's tape of a shard.
func (l *ledger) tape(shard string) *tape {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &tape{shard: shard}
	l.tapes = append(l.tapes, t)
	return t
}

// saw appends the records that a reader got to its tape.
func (l *ledger) saw(t *tape, records []types.Record, ended bool) {
	entries, err := entriesOf(records)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.t.Errorf("%s: %v", t.shard, err)
	}
	last := ""
	if n := len(t.entries); n > 0 {
		last = t.entries[n-1].number
	}
	for _, e := range entries {
		if compare(e.number, last) <= 0 {
			l.t.Errorf("%s: %s was given after %s", t.shard, e.number, last)
		}
		last = e.number
	}
	t.entries, t.ended = append(t.entries, entries...), ended
}

// lastOf is the number of the newest record on a tape, "" if there is none.
func (l *ledger) lastOf(t *tape) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(t.entries); n > 0 {
		return t.entries[n-1].number
	}
	return ""
}

// past is a ledger at an instant.
type past struct {
	acknowledged map[place]string
	tapes        []tape
	upTo         map[string]string // by shard, the highest number that anybody knew
}

func (l *ledger) past() past {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := past{acknowledged: maps.Clone(l.acknowledged), upTo: maps.Clone(l.newest)}
	for _, t := range l.tapes {
		p.tapes = append(p.tapes, *t) // entries are appended only
		if n := len(t.entries); n > 0 && compare(t.entries[n-1].number, p.upTo[t.shard]) > 0 {
			p.upTo[t.shard] = t.entries[n-1].number
		}
	}
	return p
}

// compare checks the records that were found in the shards of some streams after the instant.
func (l *ledger) compare(p past, found map[string][]entry, streams []string) {
	looked := func(shard string) bool {
		stream, _, _ := strings.Cut(shard, "/")
		return slices.Contains(streams, stream)
	}
	standing := map[place]string{}
	times := map[string]int{}
	for shard, entries := range found {
		for _, e := range entries {
			standing[place{shard, e.number}] = e.id
			times[e.id]++
		}
	}
	lost := 0
	for at, id := range p.acknowledged {
		if looked(at.shard) && standing[at] != id {
			l.t.Errorf("%s was acknowledged at %v, where %q is", id, at, standing[at])
			if lost++; lost == 10 {
				break
			}
		}
	}
	for _, t := range p.tapes {
		entries := found[t.shard]
		switch {
		case !looked(t.shard):
		case len(entries) < len(t.entries):
			l.t.Errorf("%s: %d records were seen, %d are there", t.shard, len(t.entries),
				len(entries))
		case !slices.Equal(entries[:len(t.entries)], t.entries):
			l.t.Errorf("%s: what a reader has seen is not how the shard begins", t.shard)
		case t.ended && len(entries) > len(t.entries):
			l.t.Errorf("%s: a reader was told of its end after %d records, it has %d", t.shard,
				len(t.entries), len(entries))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range times {
		if n > l.attempts[id] {
			l.t.Errorf("%s is there %d times; %d attempts have stored it or may have", id, n,
				l.attempts[id])
		}
	}
}

func (l *ledger) count(tally map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tally["records acknowledged"] += len(l.acknowledged)
	for _, id := range l.acknowledged {
		if strings.HasPrefix(id, bulkPrefix) {
			tally["large records acknowledged"]++
		}
	}
	tally["records unanswered"] += l.unanswered
	for _, t := range l.tapes {
		tally["records seen"] += len(t.entries)
	}
}

// noise has the bytes from which records are cut.
var noise = func() []byte {
	p := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	return p
}()

// content makes a record from its name, so that a byte that has changed is seen.
func content(id string) (key string, data []byte) {
	h := hashOf(id)
	size := 20 + h>>8%400
	if strings.HasPrefix(id, bulkPrefix) {
		size = 200<<10 + h>>8%(50<<10)
	}
	from := h >> 32 % (1<<20 - size)
	return fmt.Sprint("key-", h%997), append([]byte(id+" "), noise[from:from+size]...)
}

// entriesOf reads the contents of records, every byte of them.
func entriesOf(records []types.Record) ([]entry, error) {
	entries := make([]entry, len(records))
	for i, record := range records {
		id, _, _ := bytes.Cut(record.Data, []byte{' '})
		key, data := content(string(id))
		if *record.PartitionKey != key || !bytes.Equal(record.Data, data) {
			return nil, fmt.Errorf("the record %s of %q, key %q, has changed",
				*record.SequenceNumber, id, *record.PartitionKey)
		}
		entries[i] = entry{*record.SequenceNumber, string(id)}
	}
	return entries, nil
}

// hashKey is the hash key of a record.
func hashKey(id string) keyspace.Key {
	key, _ := content(id)
	return keyspace.Of(key)
}
