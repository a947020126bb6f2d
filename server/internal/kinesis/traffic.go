package kinesis

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// traffic counts a stream's incoming and outgoing records and bytes, for as long as the process
// runs and the stream is there. Each call adds to it once, whatever its number of records.
type traffic struct {
	recordsIn, bytesIn, recordsOut, bytesOut atomic.Int64
}

// put counts the stored entries of an acknowledged call.
func (t *traffic) put(entries []putRecordEntry, results []putResult) {
	records, bytes := 0, 0
	for i := range results {
		if results[i].code == "" {
			records++
			bytes += entries[i].size()
		}
	}
	t.recordsIn.Add(int64(records))
	t.bytesIn.Add(int64(bytes))
}

// got counts the records of an answer or an event.
func (t *traffic) got(records, bytes int) {
	if records > 0 {
		t.recordsOut.Add(int64(records))
		t.bytesOut.Add(int64(bytes))
	}
}

// Activity is the state of a stream at a moment, and its incoming and outgoing traffic since the
// start of the process, or since the stream was made.
type Activity struct {
	Listed
	OpenShards    int
	Subscriptions int // of SubscribeToShard, under way
	// RecordsIn and BytesIn were stored and acknowledged. RecordsOut and BytesOut were sent in
	// answers of GetRecords and in events, and count once for each of these. Bytes are those of
	// data and partition keys.
	RecordsIn, BytesIn, RecordsOut, BytesOut int64
}

// Activity returns the activity of all streams of every account and region, in any state, in order.
func (s *Service) Activity() []Activity {
	now := s.clock.read()
	subscriptions := s.fanOut.count()
	var all []Activity
	for _, st := range s.allStreams() {
		if st.gone(now) {
			continue
		}
		t := st.traffic
		all = append(all, Activity{
			Listed: Listed{st.World, st.Name}, OpenShards: len(st.routes),
			Subscriptions: subscriptions[st.key()],
			RecordsIn:     t.recordsIn.Load(), BytesIn: t.bytesIn.Load(),
			RecordsOut: t.recordsOut.Load(), BytesOut: t.bytesOut.Load(),
		})
	}
	slices.SortFunc(all, func(a, b Activity) int { return a.compare(b.Listed) })
	return all
}

// compare orders streams by account, region and name.
func (l Listed) compare(other Listed) int {
	return cmp.Or(cmp.Compare(l.World.Account, other.World.Account),
		cmp.Compare(l.World.Region, other.World.Region), cmp.Compare(l.Name, other.Name))
}

// count returns the number of running subscriptions of each stream.
func (f *fanOut) count() map[streamKey]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[streamKey]int, len(f.streams))
	for key, subscriptions := range f.streams {
		counts[key] = len(subscriptions)
	}
	return counts
}
