package kinesis

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// Activity is the state of a stream at a moment, and its incoming and outgoing traffic since the
// start of the process, or since the stream was made.
type Activity struct {
	Listed
	OpenShards    int
	Subscriptions int // of SubscribeToShard, under way
	// RecordsIn and BytesIn were stored and acknowledged. RecordsOut and BytesOut were sent in
	// answers of GetRecords and in events, and count once for each of these. Bytes are those of
	// data and partition keys. RecordsThrottled and RecordsFailed were refused in answers of
	// PutRecords, with ProvisionedThroughputExceededException and with InternalFailure.
	RecordsIn, BytesIn, RecordsOut, BytesOut int64
	RecordsThrottled, RecordsFailed          int64
}

// Activity returns the activity of all streams of every account and region, in any state, in order.
func (s *Service) Activity() []Activity {
	now := s.streams.clock.read()
	subscriptions := s.fanOut.count()
	var all []Activity
	for _, st := range s.streams.all() {
		if st.Gone(now) {
			continue
		}
		t := st.Traffic().Totals()
		all = append(all, Activity{
			Listed: Listed{st.World, st.Name}, OpenShards: len(st.OpenShards()),
			Subscriptions: subscriptions[st.Key()],
			RecordsIn:     t.RecordsIn, BytesIn: t.BytesIn,
			RecordsOut: t.RecordsOut, BytesOut: t.BytesOut,
			RecordsThrottled: t.RecordsThrottled, RecordsFailed: t.RecordsFailed,
		})
	}
	slices.SortFunc(all, func(a, b Activity) int { return a.compare(b.Listed) })
	return all
}

// countRefused counts the refused records of an answer of PutRecords.
func (s *streams) countRefused(world wire.World, t *target, results []putResult) {
	throttled, failed := 0, 0
	for i := range results {
		switch results[i].code {
		case "":
		case codeThrottled:
			throttled++
		default:
			failed++
		}
	}
	if throttled+failed == 0 {
		return
	}
	name, err := t.name(world)
	if err != nil {
		return
	}
	if st := s.peek(world, name, s.clock.read()); st != nil {
		st.Traffic().Refused(throttled, failed)
	}
}

// compare orders streams by account, region and name.
func (l Listed) compare(other Listed) int {
	return cmp.Or(cmp.Compare(l.World.Account, other.World.Account),
		cmp.Compare(l.World.Region, other.World.Region), cmp.Compare(l.Name, other.Name))
}

// count returns the number of running subscriptions of each stream.
func (f *fanOut) count() map[catalogue.Key]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[catalogue.Key]int, len(f.streams))
	for key, subscriptions := range f.streams {
		counts[key] = len(subscriptions)
	}
	return counts
}
