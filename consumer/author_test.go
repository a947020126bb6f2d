package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/keyspace"
)

// part is one unit within an aggregate: its number, the lowest unsettled one, and its records,
// all of one key.
type part struct {
	number, low uint64
	key         string
	data        []string
}

// pack makes the aggregate of a run's units; a number of 0 makes no unit but records without
// identity.
func pack(run byte, parts ...part) string {
	var e aggregate.Encoder
	for _, p := range parts {
		for i, data := range p.data {
			r := aggregate.Record{PartitionKey: p.key, Data: []byte(data)}
			if i == 0 && p.number > 0 {
				u := aggregate.Unit{Producer: aggregate.ProducerID{run}, Number: p.number, Low: p.low}
				r.Tags = u.AppendTo(nil)
			}
			if err := e.Add(r); err != nil {
				panic(err)
			}
		}
	}
	return string(e.Seal(nil))
}

// unit makes an aggregate of one unit with the given records, of a run that has settled all units
// before.
func unit(run byte, number uint64, key string, data ...string) string {
	return pack(run, part{number: number, low: number, key: key, data: data})
}

// journal holds the records that a handler or the writers of a sink received.
type journal struct {
	mu      sync.Mutex
	records []runnel.Record
	batches []int
}

func (j *journal) handle(_ context.Context, b *consumer.Batch) error {
	j.take(b.Records)
	return nil
}

func (j *journal) take(records []runnel.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, records...)
	j.batches = append(j.batches, len(records))
}

// text returns the data of all delivered records.
func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return dataOf(j.records)
}

func dataOf(records []runnel.Record) string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Data))
	}
	return strings.Join(all, " ")
}

func (j *journal) into(c *consumer.Config) { c.Handler = j.handle }

// expect waits until the delivered data is want, and checks that no record follows.
func (f *fleet) expect(j *journal, want string) {
	f.Helper()
	limit := time.Now().Add(3 * failover)
	for j.text() != want && time.Now().Before(limit) {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(2 * time.Second) // checkpoints, too
	if got := j.text(); got != want {
		f.dump()
		f.Fatalf("delivered %q, want %q", got, want)
	}
}

// last returns the position of the newest record of a shard: its sub-th user record.
func (s *fakeStream) last(shard int, sub int64) runnel.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.shards[shard].records[len(s.shards[shard].records)-1]
	return runnel.Position{Sequence: runnel.SequenceNumber(*r.SequenceNumber), Sub: sub}
}

// dropped adds up the counts of the events.
func (f *fleet) dropped() (doubles, malformed int) {
	for _, e := range f.happened(consumer.EventDelivered) {
		doubles += e.Doubles
		malformed += e.Malformed
	}
	return doubles, malformed
}

// keysOf returns n keys of the i-th open shard.
func (s *fakeStream) keysOf(i, n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	keys := s.open()[i].keys
	for k := 0; len(found) < n; k++ {
		if key := fmt.Sprint("key-", k); keys.Contains(keyspace.Of(key)) {
			found = append(found, key)
		}
	}
	return found
}

// mustStop stops a worker gracefully, so that its checkpoints are written.
func (f *fleet) mustStop(m *member) {
	f.Helper()
	m.stop()
	if err := <-m.err; err != nil {
		f.Fatal(err)
	}
}

// effects returns the records in a chain, in the order of the shards.
func (s *chain) effects(f *fleet) []runnel.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []runnel.Record
	for _, sh := range f.stream.shards {
		if l := s.links[sh.id]; l != nil {
			all = append(all, l.effects...)
		}
	}
	return all
}

func (s *chain) await(f *fleet, want string) {
	f.Helper()
	f.await(3*failover, "effects: "+want, func() bool {
		return len(dataOf(s.effects(f))) >= len(want)
	})
	<-time.After(failover)
	if got := dataOf(s.effects(f)); got != want {
		f.dump()
		f.Fatalf("the sink has %q, want %q", got, want)
	}
}

func calm() *chaos { return &chaos{calm: true} }
