package dynamo

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/budget"
)

// returned makes the JSON of items that a write returns, of so many bytes as their sizes count. Few
// long ones are made at a time, and the next one is made once the memory for answers has room for
// this one: until then a write keeps only its items' stored form.
//
// The write was decided, so it is never refused here: to its client a refusal would mean that
// nothing was done, and an SDK would make it again. An error is the context's.
func (s *Service) returned(
	ctx context.Context, sending *budget.Share, size int, encode func() []byte,
) ([]byte, error) {
	if size < smallPage {
		return encode(), nil
	}
	select {
	case s.returns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.returns }()
	json := encode()
	if err := sending.Grow(ctx, len(json)); err != nil && !errors.Is(err, budget.ErrFull) {
		return nil, err
	}
	return json, nil
}
