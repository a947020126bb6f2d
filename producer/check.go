package producer

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// The errors of Put for an invalid record, which was neither taken nor sent.
var (
	// ErrTooLarge means that data and partition key exceed the stream's limit
	// (Config.MaxRecordBytes) or the whole buffer. With a Journal, the bytes of the record's
	// identity count too.
	ErrTooLarge = errors.New("the record is too large")
	// ErrInvalidPartitionKey means a key that is not 1 to 256 characters of valid UTF-8.
	ErrInvalidPartitionKey = errors.New("the partition key is not valid")
	// ErrInvalidHashKey means an ExplicitHashKey that is not a decimal integer in [0, 2^128-1]. The
	// error also matches keyspace.ErrKeySyntax.
	ErrInvalidHashKey = errors.New("the explicit hash key is not valid")
	// ErrNestedAggregate means that the data is an aggregated record and the producer has a
	// Journal. Aggregates do not nest, so the record can have no identity, and a Journal stores
	// only records with one.
	ErrNestedAggregate = errors.New("the data is an aggregated record already")
)

const maxKeyCharacters = 256 // of a partition key (AWS, "PutRecordsRequestEntry")

// check returns nil if the record is valid apart from its size, which fit checks. A single invalid
// record makes the stream refuse a whole call, so the producer sends none.
func (c Config) check(record runnel.Record) error {
	key, hash := record.PartitionKey, record.ExplicitHashKey
	if err := c.checkKeys(key, hash); err != nil {
		return fmt.Errorf("put to stream %s: %w", c.Stream, err)
	}
	if c.Journal != nil && aggregate.IsAggregate(record.Data) {
		return fmt.Errorf("put to stream %s, key %q: %w; put the records inside it, or use no "+
			"journal", c.Stream, key, ErrNestedAggregate)
	}
	return nil
}

// checkKeys returns nil if the keys are valid.
func (Config) checkKeys(key, hash string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty; give the record a key", ErrInvalidPartitionKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %.40q is not UTF-8; encode the key as text",
			ErrInvalidPartitionKey, key)
	case len(key) > maxKeyCharacters && utf8.RuneCountInString(key) > maxKeyCharacters:
		return fmt.Errorf("%w: %.40q… has %d characters, the limit is %d; shorten it or put its "+
			"hash", ErrInvalidPartitionKey, key, utf8.RuneCountInString(key), maxKeyCharacters)
	}
	if hash != "" {
		if _, err := keyspace.Parse(hash); err != nil {
			return fmt.Errorf("key %q: %w: %w", key, ErrInvalidHashKey, err)
		}
	}
	return nil
}
