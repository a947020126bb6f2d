package producer

import (
	"context"
	"fmt"
)

// Keys gives records their explicit hash keys, by their partition keys. It is used by several
// goroutines at a time.
type Keys interface {
	// Use returns the explicit hash key for a record that is to be put now, in decimal, and what
	// is called once when the record has its result and its callback has returned, or was not
	// taken. It may wait until ctx ends; the Close of a producer does not wake it.
	Use(ctx context.Context, partitionKey string) (explicitHashKey string, done func(), err error)
}

// useKey gives a record the explicit hash key that it is to have.
func (p *Producer) useKey(ctx context.Context, e *entry) error {
	key := e.record.PartitionKey
	if err := p.cfg.checkKeys(key, ""); err != nil { // no other one is given a hash key
		return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, err)
	}
	hash, done, err := p.cfg.Keys.Use(ctx, key)
	if err != nil {
		return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, err)
	}
	e.record.ExplicitHashKey, e.used = hash, done
	return nil
}
