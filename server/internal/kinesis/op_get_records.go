package kinesis

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

type getRecordsInput struct {
	ShardIterator *string
	Limit         *integer
	StreamARN     *string

	sending *budget.Share
	stream  string // the iterator's, once it was read
}

// sendsBy is part of large.
func (in *getRecordsInput) sendsBy(memory *budget.Share) { in.sending = memory }

// The limits of an answer (AWS, "GetRecords").
const (
	maxGetRecords = 10_000
	maxGetBytes   = 10 << 20 // of data and partition keys
)

func (in *getRecordsInput) validate(*violations) {}

// getRecords reads from an iterator on. The answer always holds a new iterator, except at the end
// of a closed shard: there it names the shard's children instead.
func (s *Service) getRecords(
	ctx context.Context, world wire.World, in *getRecordsInput,
) (any, error) {
	sealer := s.sealer.Load()
	it, err := sealer.openIterator(world, *in.ShardIterator)
	if err != nil {
		return nil, err
	}
	in.stream = it.stream
	now := s.streams.clock.read()
	age := now.Elapsed - it.issued
	if age > iteratorLife || fault.From(ctx).ExpireIterator {
		return nil, iteratorExpired(now.Stamp-age, now.Stamp)
	}
	if in.StreamARN != nil {
		if there, name := splitARN(*in.StreamARN); there != world || name != it.stream {
			return nil, invalid("StreamARN %s does not name the stream of the ShardIterator.",
				*in.StreamARN)
		}
	}
	read, err := s.read(ctx, world, it, in)
	if errors.Is(err, shardlog.ErrDeleted) {
		return nil, shardMissing(world, it.stream, shardid.Of(it.shard))
	}
	if err != nil {
		return nil, err
	}
	if read.children == nil {
		it.issued, it.place = s.streams.clock.read().Elapsed, read.place
		read.iterator = sealer.sealIterator(world, it)
	}
	return read, nil
}

func (in *getRecordsInput) limit() int {
	if in.Limit == nil {
		return maxGetRecords
	}
	return int(*in.Limit)
}

// reading is the result of a read.
type reading struct {
	settings *catalogue.Settings // the stream's
	shard    *catalogue.Shard
	records  []shardlog.Record
	lent     shardlog.Chunks    // where the records' data lies
	next     uint64             // the index to go on from
	place    uint64             // the same, for the next iterator
	behind   int64              // ms
	children []*catalogue.Shard // not nil: the shard is closed and at its end
	iterator string             // "" at the end
}

// portion is an upper bound of the records of a read.
type portion struct{ records, bytes int }

// fewRecords fit into an answer that needs no budget: see budget.Free.
var fewRecords = portion{records: 40, bytes: 4 << 10}

// source is a shard's log from an index on.
type source struct {
	log  *shardlog.Shard
	from uint64
	lent *shardlog.Chunks // of the last read; nil: reads have memory of their own
}

func (s *source) read(ctx context.Context, most portion) ([]shardlog.Record, uint64, error) {
	if s.lent != nil {
		s.lent.Release()
	}
	return s.log.ReadLent(ctx, s.lent, s.from, most.records, most.bytes)
}

// readWithin reads records into an answer with a share of a budget. While the answers of slow
// readers hold most of the memory it reads fewer records. If they hold all of it, and the next
// records are small, it reads some of these without a budget: small answers never wait for large
// ones. Otherwise it waits, and has read nothing meanwhile: a thousand reads may wait.
func readWithin(
	ctx context.Context, memory *budget.Share, of *catalogue.Settings, most portion, log *source,
) (records []shardlog.Record, next uint64, err error) {
	least := min(int(of.MaxRecord)<<10+maxPartitionKey*4, most.bytes)
	got, ok := memory.TryGrowUpTo(answerCost(least), answerCost(most.bytes))
	if !ok {
		var larger int
		records, next, larger, err = log.log.ReadSmall(ctx, log.lent, log.from,
			min(most.records, fewRecords.records), fewRecords.bytes)
		if err != nil || larger == 0 {
			return records, next, err
		}
		least = min(least, larger)
		got, err = memory.GrowUpTo(ctx, answerCost(least), answerCost(most.bytes))
		if errors.Is(err, budget.ErrFull) {
			return nil, 0, fail(codeThrottled, "Rate exceeded: %v.", err)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	most.bytes = min(most.bytes, max(least, got*2/5))
	return log.read(ctx, most)
}

// answerCost is the memory of an answer with so many bytes of records: these, and their base64 in
// JSON.
func answerCost(bytes int) int { return bytes * 5 / 2 }

// read returns the records from an iterator on, and the distance from the tip in time.
func (s *Service) read(
	ctx context.Context, world wire.World, it iterator, in *getRecordsInput,
) (*reading, error) {
	st, now, err := s.streams.view(ctx, world, it.stream)
	if err != nil {
		return nil, err
	}
	if st == nil || st.Created != it.created {
		return nil, shardlog.ErrDeleted
	}
	sh := st.Shard(it.shard, now)
	if sh == nil {
		return nil, shardlog.ErrDeleted
	}
	log := s.shards.Shard(sh.Log)
	if log == nil {
		return nil, shardlog.ErrDeleted
	}
	if err := s.limits.read(st, sh, now); err != nil {
		return nil, err
	}
	sequenced := log.Sequenced() // before anything is read
	// Ask first whether the shard is closed, and then for the records' bounds: only in this order
	// are the bounds of a closed shard final.
	closed := !sh.IsOpen() && log.Sealed()
	oldest, tip := log.Bounds()
	from, _ := log.IndexOf(it.place)
	r := &reading{settings: &st.Settings, shard: sh, next: max(from, oldest)}
	here := &source{log: log, from: from, lent: &r.lent}
	whole := portion{in.limit(), maxGetBytes}
	var records []shardlog.Record
	var next uint64
	if r.next < tip {
		records, next, err = readWithin(ctx, in.sending, &st.Settings, whole, here)
	} else {
		records, next, err = here.read(ctx, whole)
	}
	if err != nil {
		return nil, damaged(fmt.Errorf("read stream %s, %s: %w", st.Name, sh.ID(), err), st, sh)
	}
	r.records, r.next = records, max(next, r.next)
	s.limits.countRead(st, r, now)
	st.Traffic().Out(len(records), payloadSize(records))
	if n := len(records); n > 0 {
		last := records[n-1]
		// The read may have found part of the records that came after the bounds were taken.
		if _, newest := log.Bounds(); r.next < newest {
			r.behind = max(1, now.Stamp-last.Arrival)
		}
	}
	if r.next < sequenced { // it is on its way to the disk, or was a moment ago
		r.behind = max(1, r.behind)
	}
	r.place = log.Place(r.next)
	if closed && r.next >= tip {
		r.children = make([]*catalogue.Shard, 0, 2)
		r.children = append(r.children, st.Children(sh.Index)...)
	}
	return r, nil
}
