package interop

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// opened has the user records of a stream, opened by runnel's package aggregate.
type opened struct {
	f          *fleet
	aggregates int
	voided     int                   // aggregates with a user record of another shard
	sightings  map[string][]sighting // by the user record's data, which is unique
	again      int                   // user records that occur more than once
	java       map[string]string     // the records that a KCL delivers: data to key
}

// sighting is one occurrence of a user record in a shard that its hash key belongs to.
type sighting struct {
	key, hashKey    string
	shard, sequence string
	alone           bool // the user record is a whole Kinesis record, without its hash key
	hashKeys        keyspace.Range
}

// open reads the whole stream.
func open(f *fleet) *opened {
	o := &opened{f: f, sightings: map[string][]sighting{}, java: map[string]string{}}
	for _, shard := range f.shards() {
		for _, record := range f.records(shard) {
			o.add(shard, record)
		}
	}
	return o
}

func (o *opened) add(shard types.Shard, record types.Record) {
	at := sighting{
		shard: *shard.ShardId, sequence: *record.SequenceNumber, hashKeys: o.f.hashKeys(shard),
	}
	var decoder aggregate.Decoder
	if !decoder.Open(record.Data) {
		at.key, at.alone = *record.PartitionKey, true
		data := string(record.Data)
		o.sightings[data] = append(o.sightings[data], at)
		o.java[data] = at.key
		return
	}
	o.aggregates++
	outside := decoder.Check(at.hashKeys)
	if outside != nil {
		o.voided++
		// The KPL may not know of the split yet, so it may be wrong about the children only.
		if !errors.Is(outside, aggregate.ErrOutsideShard) || shard.ParentShardId == nil {
			o.f.t.Errorf("%s: %v", at.shard, outside)
		}
	}
	for _, r := range decoder.Records() {
		if !at.hashKeys.Contains(r.Hash()) {
			continue
		}
		at.key, at.hashKey = r.PartitionKey, r.ExplicitHashKey
		o.sightings[string(r.Data)] = append(o.sightings[string(r.Data)], at)
		if outside == nil { // otherwise a KCL drops the whole aggregate
			o.java[string(r.Data)] = r.PartitionKey
		}
	}
}

// check compares the stream with the KPL's reports.
func (o *opened) check(put []kplPut) {
	t := o.f.t
	explicit := 0
	keys := map[string]bool{}
	for _, p := range put {
		keys[p.key] = true
		if p.hashKey != "" {
			explicit++
		}
		o.checkOne(p)
	}
	if len(o.sightings) != len(put) {
		t.Errorf("%d user records are in the stream, want %d", len(o.sightings), len(put))
	}
	if len(keys) != kplKeys || explicit == 0 || o.aggregates == 0 || o.aggregates > len(put)/4 {
		t.Errorf("%d keys, %d explicit hash keys, %d aggregates: the test needs others",
			len(keys), explicit, o.aggregates)
	}
	// Records that the KPL reports as delivered, but a KCL drops, would show between these numbers.
	t.Logf("%d user records in %d aggregates, %d of these with records of another shard; "+
		"%d repeated; a KCL gets %d", len(o.sightings), o.aggregates, o.voided, o.again, len(o.java))
}

func (o *opened) checkOne(p kplPut) {
	t := o.f.t
	seen := o.sightings[p.data]
	switch {
	case len(seen) == 0:
		t.Errorf("%.40s of %s is not in the stream", p.data, p.key)
	case len(seen) > 1 && p.attempts == 1:
		t.Errorf("%.40s of %s is there %d times, and was sent once", p.data, p.key, len(seen))
	case len(seen) > 1:
		o.again++
	}
	hash := aggregate.Record{PartitionKey: p.key, ExplicitHashKey: p.hashKey}.Hash()
	said := false // the KPL reported one of the occurrences
	for _, s := range seen {
		said = said || s.shard == p.shard && s.sequence == p.sequence
		if s.key != p.key || s.hashKey != p.hashKey && !s.alone || !s.hashKeys.Contains(hash) {
			t.Errorf("%.40s of %s %s is there as %+v", p.data, p.key, p.hashKey, s)
		}
	}
	if !said {
		t.Errorf("%.40s is in %+v, the KPL says %s %s", p.data, seen, p.shard, p.sequence)
	}
}

// checkJava compares the stream with the KCL's records.
func (o *opened) checkJava() {
	want := map[string]map[string]bool{}
	for data, key := range o.java {
		if want[key] == nil {
			want[key] = map[string]bool{}
		}
		want[key][data] = true
	}
	for key, fault := range o.f.read.differs(want) {
		o.f.t.Errorf("the KCL read of %s: %s", key, fault)
	}
}
