package dynamo

import (
	"context"
	"sync"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const (
	// longBody is the length of a body from which on few are decoded at a time: a document of a
	// megabyte may have maxNodes values, which take a hundred. The write of a lease is shorter, and
	// never waits.
	longBody = 64 << 10
	// smallPage is the number of bytes up to which a page is read at once, as one of 40 leases. Few
	// longer ones are read and answered at a time: a page of 1 MiB may take 40 MB meanwhile.
	smallPage = 16 << 10
	// turns is the number of long bodies that a service decodes at a time, that of long pages, and
	// that of long answers to writes.
	turns = 4
)

// roomOf estimates the bytes that a request can add to so many items, at most twice their greatest
// size. The log counts them before the write is decided, within the call's turn, and a large
// estimate waits longer.
func roomOf(body []byte, items int) int {
	return min(len(body), items*2*itemstore.MaxItemSize)
}

// turnKey is the context's key of the function that ends a call's turn.
type turnKey struct{}

// turn waits until the service may decode a long body. end ends the turn; so does endTurn.
func (s *Service) turn(ctx context.Context) (with context.Context, end func(), err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx, nil, ctx.Err()
	}
	end = sync.OnceFunc(func() { <-s.turns })
	return context.WithValue(ctx, turnKey{}, end), end, nil
}

// endTurn ends the turn of a call with a long body before its write waits for the disk: a disk that
// hangs would otherwise stop every other long body. Call it once the write is decided and nothing
// decoded is needed any more.
func endTurn(ctx context.Context) {
	if end, long := ctx.Value(turnKey{}).(func()); long {
		end()
	}
}

// pageTurn waits for the turn of a long page, or of an item as long. The caller calls done when the
// answer is made.
func (s *Service) pageTurn(ctx context.Context) (done func(), err error) {
	select {
	case s.pages <- struct{}{}:
		return func() { <-s.pages }, nil
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}
