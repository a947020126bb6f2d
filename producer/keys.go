package producer

import (
	"context"
	"fmt"
)

// Keys assigns explicit hash keys to records by their partition keys. The producer calls it from
// several goroutines at a time.
type Keys interface {
	// Use returns the explicit hash key, in decimal, for a record that is about to be put. The
	// producer calls done exactly once: after the record's callback has returned, or when the
	// record was not taken. Use may block until ctx ends; the Close of a producer does not wake it.
	// Put returns its error, wrapped.
	Use(ctx context.Context, partitionKey string) (explicitHashKey string, done func(), err error)
}

// useKey sets the explicit hash key of a record from Config.Keys.
func (p *Producer) useKey(ctx context.Context, e *entry) error {
	key := e.record.PartitionKey
	if err := p.cfg.checkKeys(key, ""); err != nil { // no hash key is reserved for an invalid key
		return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, err)
	}
	hash, done, err := p.cfg.Keys.Use(ctx, key)
	if err != nil {
		return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, err)
	}
	e.record.ExplicitHashKey, e.used = hash, done
	return nil
}
