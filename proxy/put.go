package proxy

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// batch collects the results of a request's records.
type batch struct {
	// results is in the request's order. take writes the results of refused records, and the
	// producer's callbacks write all others. The results are complete once done is closed.
	results []producer.Result
	done    chan struct{}

	missing atomic.Int64 // results, and 1 while take runs
	finish  func()       // called once, after the last result and before done is closed
}

// count counts n results that were written.
func (b *batch) count(n int) {
	if b.missing.Add(-int64(n)) == 0 {
		b.finish()
		close(b.done)
	}
}

// take gives a request's records to the stream's producer, in their order. If one finds no room,
// take refuses it and all later records, since a later record of its key must not overtake it. A
// record that is too large for the stream is refused alone. finish is called when all records have
// their results.
func take(
	ctx context.Context, into *producer.Producer, records []wire.PutEntry, finish func(),
) *batch {
	b := &batch{
		results: make([]producer.Result, len(records)), done: make(chan struct{}), finish: finish,
	}
	b.missing.Store(int64(len(records)) + 1)
	for i := range records {
		err := into.PutFunc(ctx, recordOf(&records[i]), func(result producer.Result) {
			b.results[i] = result
			b.count(1)
		})
		switch {
		case err == nil:
			continue
		case errors.Is(err, producer.ErrTooLarge):
			b.results[i].Err = err
			b.count(1)
			continue
		}
		for j := i; j < len(records); j++ {
			b.results[j].Err = err
		}
		b.count(len(records) - i)
		break
	}
	b.count(1)
	return b
}

func recordOf(e *wire.PutEntry) runnel.Record {
	record := runnel.Record{PartitionKey: *e.PartitionKey, Data: e.Data}
	if e.ExplicitHashKey != nil {
		record.ExplicitHashKey = *e.ExplicitHashKey
	}
	return record
}

// put takes a request's records and waits for their results. If the client disconnects first, the
// results and the error are nil. The records that were taken are delivered all the same, so free,
// which releases the request's memory, may be called after put has returned.
func (p *Proxy) put(
	ctx context.Context, request *wire.PutRecordsInput, free func(),
) ([]producer.Result, *wire.Error) {
	var st *stream
	name, err := p.world.identify(ctx, &request.StreamRef)
	if err == nil {
		st, err = p.streams.use(ctx, name)
	}
	if err != nil {
		free()
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, errorOf(err)
	}
	room, cancel := context.WithTimeoutCause(ctx, p.cfg.PutWait, errFull)
	defer cancel()
	b := take(room, st.producer, request.Records, func() {
		p.streams.leave(st)
		free()
	})
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	return b.results, commonError(b.results)
}

// commonError returns an error if all records of a request failed with the same code, and nil
// otherwise: AWS refuses such a request as a whole.
func commonError(results []producer.Result) *wire.Error {
	var first *wire.Error
	for i := range results {
		if results[i].Err == nil {
			return nil
		}
		failure := errorOf(results[i].Err)
		if first == nil {
			first = failure
		} else if failure.Code != first.Code {
			return nil
		}
	}
	return first
}
