package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
)

// source is the demo's events. The demo reads them twice: to put them, and to compare the archive.
type source struct {
	read  func(context.Context) iter.Seq2[event, error]
	total int64 // events
}

// openSource returns the events of the options: made from the seed, or of a file. It counts the
// lines of a file, which finds a wrong one before anything starts.
func openSource(ctx context.Context, options Options) (source, error) {
	if options.Input == "" {
		made := func(context.Context) iter.Seq2[event, error] {
			return func(yield func(event, error) bool) {
				for e := range repositoryEvents(options.Seed, options.Records) {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
		return source{read: made, total: int64(options.Records)}, nil
	}
	format, err := input.New(input.Fields{Format: "ndjson", Key: options.Key})
	if err != nil {
		return source{}, err
	}
	s := source{read: func(ctx context.Context) iter.Seq2[event, error] {
		return fileEvents(ctx, format, options.Input)
	}}
	for _, err := range s.read(ctx) {
		if err != nil {
			return source{}, err
		}
		s.total++
	}
	if s.total == 0 {
		return source{}, exit.Usage("--input %s holds no line", options.Input)
	}
	return s, nil
}

// fileEvents reads the lines of a file. A line's number is its id, because lines may be equal.
func fileEvents(ctx context.Context, format *input.Format, name string) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		number := 0
		err := format.ReadFile(ctx, name, func(l input.Line) error {
			number++
			e := event{id: fmt.Sprint(number), key: l.Key, data: bytes.Clone(l.Data)}
			if !yield(e, nil) {
				return exit.ErrStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, exit.ErrStop) {
			yield(event{}, err)
		}
	}
}
