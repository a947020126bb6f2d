package proxy

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// batch is the records of one request and what becomes of them.
type batch struct {
	// results has the outcome of each record, in the request's order. The taker writes those of
	// the records that were refused, the producer's callbacks those of the others; all are there
	// once done is closed.
	results []producer.Result
	done    chan struct{}

	left   atomic.Int64 // results that are to come, and one for the taker
	finish func()       // called once, with the last result, before done is closed
}

// landed counts n results.
func (b *batch) landed(n int) {
	if b.left.Add(-int64(n)) == 0 {
		b.finish()
		close(b.done)
	}
}

// take gives a request's records to the stream's producer, in their order. Once there is no
// room for one, it and all behind it are refused, so that none of its key is taken in its
// place. One that is too large for the stream is refused alone. finish is called when all have
// their results.
func take(
	ctx context.Context, into *producer.Producer, records []entry, finish func(),
) *batch {
	b := &batch{
		results: make([]producer.Result, len(records)), done: make(chan struct{}), finish: finish,
	}
	b.left.Store(int64(len(records)) + 1)
	for i := range records {
		err := into.PutFunc(ctx, records[i].record(), func(result producer.Result) {
			b.results[i] = result
			b.landed(1)
		})
		switch {
		case err == nil:
			continue
		case errors.Is(err, producer.ErrTooLarge): // for this stream; the others are not
			b.results[i].Err = err
			b.landed(1)
			continue
		}
		for j := i; j < len(records); j++ {
			b.results[j].Err = err
		}
		b.landed(len(records) - i)
		break
	}
	b.landed(1)
	return b
}

func (e *entry) record() runnel.Record {
	record := runnel.Record{PartitionKey: *e.PartitionKey, Data: e.Data}
	if e.ExplicitHashKey != nil {
		record.ExplicitHashKey = *e.ExplicitHashKey
	}
	return record
}

// put takes a request's records and waits for their results. free is called when they are no
// longer held, be that after the client has gone. Without an error, results that are nil mean
// that the client has gone.
func (p *Proxy) put(
	ctx context.Context, request *request, free func(),
) ([]producer.Result, *wire.Error) {
	var st *stream
	name, err := p.world.identify(ctx, &request.target)
	if err == nil {
		st, err = p.streams.use(ctx, name)
	}
	if err != nil {
		free()
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, answerTo(err)
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
		return nil, nil // the records that were taken are delivered all the same
	}
	return b.results, wholly(b.results)
}

// wholly returns the error of a request of which no record was stored, all of them for the same
// reason: AWS answers such a request as a whole.
func wholly(results []producer.Result) *wire.Error {
	var first *wire.Error
	for i := range results {
		if results[i].Err == nil {
			return nil
		}
		failure := answerTo(results[i].Err)
		if first == nil {
			first = failure
		} else if failure.Code != first.Code {
			return nil
		}
	}
	return first
}
