package producer

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// What Put refuses. A refused record was not taken and nothing was sent.
var (
	// ErrTooLarge: data and partition key exceed Config.MaxRecordBytes.
	ErrTooLarge = errors.New("the record is too large")
	// ErrPartitionKey: not 1 to 256 characters of valid UTF-8.
	ErrPartitionKey = errors.New("the partition key is not valid")
	// ErrHashKey: ExplicitHashKey is not a decimal integer in [0, 2^128-1]. The error also
	// matches keyspace.ErrSyntax.
	ErrHashKey = errors.New("the explicit hash key is not valid")
)

const maxKeyCharacters = 256 // of a partition key (AWS, "PutRecordsRequestEntry")

// check returns nil if the stream can take the record, as far as can be known here. One
// invalid record would have the whole call refused, so none is ever sent.
func (c Config) check(record runnel.Record) error {
	key := record.PartitionKey
	switch {
	case key == "":
		return fmt.Errorf("put to stream %s: %w: it is empty; give the record a key",
			c.Stream, ErrPartitionKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("put to stream %s: %w: %.40q is not UTF-8; encode the key as text",
			c.Stream, ErrPartitionKey, key)
	case len(key) > maxKeyCharacters && utf8.RuneCountInString(key) > maxKeyCharacters:
		return fmt.Errorf("put to stream %s: %w: %.40q… has %d characters, the limit is %d; "+
			"shorten it or put its hash", c.Stream, ErrPartitionKey, key,
			utf8.RuneCountInString(key), maxKeyCharacters)
	}
	if record.ExplicitHashKey != "" {
		if _, err := keyspace.Parse(record.ExplicitHashKey); err != nil {
			return fmt.Errorf("put to stream %s, key %q: %w: %w", c.Stream, key, ErrHashKey, err)
		}
	}
	if size := len(record.Data) + len(key); size > c.MaxRecordBytes {
		return fmt.Errorf("put to stream %s, key %q: %w: data and key have %d bytes, the limit "+
			"is %d; split the record, or raise the stream's limit with UpdateMaxRecordSize (up "+
			"to 10 MiB) and MaxRecordBytes with it", c.Stream, key, ErrTooLarge, size,
			c.MaxRecordBytes)
	}
	return nil
}
