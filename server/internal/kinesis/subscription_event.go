package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// shardState is the state of a shard at one moment.
type shardState struct {
	sealed      bool // the bounds are final
	oldest, tip uint64
	sequenced   uint64 // above the tip: records are on their way to the disk
}

// there returns the shard's present state. It asks first whether the shard is sealed, and then for
// the bounds: only in this order are the bounds of a sealed shard final. It also asks for the
// sequenced records before the bounds: see shardlog.Shard.Sequenced.
func (u *subscription) there() (s shardState) {
	s.sequenced = u.records.Sequenced()
	s.sealed = u.records.Sealed()
	s.oldest, s.tip = u.records.Bounds()
	return s
}

// event returns the next event, if it is time for one: with records, at the end of the shard, or an
// empty one after a while. The errors are those that Next returns.
func (u *subscription) event(
	ctx context.Context, there shardState,
) (e wire.Event, found bool, err error) {
	u.next = max(u.next, there.oldest)
	switch tip := there.tip; {
	case u.next < tip && !u.paced():
		e, err = u.recordsEvent(ctx, there)
	case u.next >= tip && there.sealed: // the shard is closed: look has seen to that
		e, err = u.endEvent()
	case !time.Now().Before(u.due):
		behind := int64(0)
		if u.next < max(tip, there.sequenced) {
			behind = 1 // or more: the records were not looked at
		}
		e = u.give(u.appendEvent(u.space[:0], nil, behind))
	default:
		return e, false, nil
	}
	return e, true, err
}

// count counts the records of an event, and their bytes.
func (u *subscription) count(records, bytes int) {
	u.stream.Traffic().Out(records, bytes)
	if u.facts != nil {
		u.facts.Records += records
	}
}

// give returns an event with a payload.
func (u *subscription) give(payload []byte) wire.Event {
	u.due = time.Now().Add(subscriptionPulse)
	return wire.Event{Type: "SubscribeToShardEvent", Payload: payload}
}

// recordsEvent returns an event with the records from the position on, and advances the position.
// It goes no further than the tip: whether later records are encrypted is not known yet.
func (u *subscription) recordsEvent(
	ctx context.Context, there shardState,
) (wire.Event, error) {
	tip := there.tip
	pending := there.sequenced > tip
	if e := u.fan.find(u.next, tip, u.stream, pending); e != nil {
		u.count(int(tip-u.next), e.bytes)
		u.next = tip
		u.pace(e.bytes)
		return u.give(e.payload), nil
	}
	count := int(min(maxEventRecords, tip-u.next))
	records, next, err := readWithin(ctx, u.sending, &u.stream.Settings,
		portion{count, maxEventBytes}, &source{log: u.records, from: u.next})
	if errors.Is(err, shardlog.ErrDeleted) {
		err = shardMissing(u.key.stream.World, u.key.stream.Name, u.shard.ID())
	}
	if err != nil {
		err = fmt.Errorf("subscription to stream %s, %s: %w", u.key.stream.Name, u.shard.ID(), err)
		return u.failed(damaged(err, u.stream, u.shard))
	}
	for n := len(records); n > 0 && records[n-1].Index >= tip; n-- { // lost ones lie before them
		records = records[:n-1]
	}
	bytes := payloadSize(records)
	u.count(len(records), bytes)
	u.pace(bytes)
	from, behind := u.next, int64(0)
	u.next = min(next, tip)
	if n := len(records); n > 0 && u.next < tip {
		behind = max(1, u.streams.clock.read().Stamp-records[n-1].Arrival)
	}
	whole := behind == 0
	if pending {
		behind = max(1, behind)
	}
	if !whole || !u.fan.shared() {
		u.space = u.appendEvent(u.space[:0], records, behind)
		payload := u.space
		if cap(u.space) > maxSpace {
			u.space = nil
		}
		return u.give(payload), nil
	}
	payload := u.appendEvent(nil, records, behind)
	u.fan.keep(sharedEvent{
		from: from, to: u.next, stream: u.stream, pending: pending, payload: payload, bytes: bytes,
	})
	return u.give(payload), nil
}

// appendEvent appends a SubscribeToShardEvent with the records up to the position.
func (u *subscription) appendEvent(dst []byte, records []shardlog.Record, behind int64) []byte {
	if size := 256 + recordsSizeJSON(records); cap(dst) < size {
		dst = make([]byte, 0, size)
	}
	dst = append(dst, `{"ContinuationSequenceNumber":"`...)
	dst = continuation(u.shard, u.records.Place(u.next)-1).appendText(dst)
	dst = append(dst, `","MillisBehindLatest":`...)
	dst = strconv.AppendInt(dst, behind, 10)
	dst = append(dst, `,"Records":`...)
	dst = appendRecordsOf(dst, &u.stream.Settings, u.shard, records)
	return append(dst, '}')
}

// endEvent returns the event at the shard's end.
func (u *subscription) endEvent() (wire.Event, error) {
	u.over = true
	children := describeChildren(u.stream.Children(u.shard.Index))
	payload, err := json.Marshal(struct {
		Records            []struct{}
		MillisBehindLatest int64
		ChildShards        []childDescription
	}{[]struct{}{}, 0, children})
	return u.give(payload), err
}

// exception returns the event of an error, which is the stream's last.
func (u *subscription) exception(problem *wire.Error) (wire.Event, error) {
	u.over = true
	payload, err := json.Marshal(struct {
		Message string `json:"message"`
	}{problem.Message})
	return wire.Event{Type: problem.Code, Exception: true, Payload: payload}, err
}
