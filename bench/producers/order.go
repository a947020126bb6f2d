package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
)

// putterOf returns the putter of a way.
func putterOf(name string, api *kinesis.Client) (putter, error) {
	if name == waySeed {
		return seed{api}.put, nil
	}
	word, _, _ := strings.Cut(name, " ")
	order, err := producer.ParseOrder(word)
	if err != nil {
		return nil, err
	}
	return own{producer.Config{Kinesis: api, Reader: api, Order: order}}.put, nil
}

// own puts by runnel's producer.
type own struct{ cfg producer.Config }

func (o own) put(
	ctx context.Context, stream string, events []event, most time.Duration,
) (result done, err error) {
	o.cfg.Stream = stream
	var first error
	o.cfg.OnResult = func(_ runnel.Record, r producer.Result) { // one at a time
		switch {
		case r.Err == nil:
			result.Records++
		// ErrClosed: the time was over before this record was put. It does not count.
		case !errors.Is(r.Err, producer.ErrClosed):
			result.Failed++
			first = r.Err
		}
	}
	p, err := producer.New(ctx, o.cfg)
	if err != nil {
		return result, err
	}
	start := time.Now()
	for i := range events {
		if i%256 == 0 && time.Since(start) > most {
			break
		}
		record := runnel.Record{PartitionKey: events[i].key, Data: events[i].data}
		if err := p.PutFunc(ctx, record, nil); err != nil {
			return result, errors.Join(err, p.Close(ctx))
		}
	}
	closing, cancel := context.WithDeadline(ctx, start.Add(most))
	defer cancel()
	err = p.Close(closing)
	result.Seconds = time.Since(start).Seconds()
	if closing.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return result, errors.Join(err, first)
}
