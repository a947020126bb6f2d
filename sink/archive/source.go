package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/runnel-stream/runnel/internal/ndjson"
)

// SourceRecord is a record that was put, in the form for verification.
type SourceRecord struct {
	ID   string // names this record and no other; a repeated ID is an error
	Key  string // records of one key are in order; "" if order is not checked
	Line int64  // the record's line in its file, from 1; 0 if it is not from a file
}

// ErrUnusableSource is returned for a source that cannot be used for verification: it cannot be
// read, has no records, or an id is not unique. It says nothing about the archive.
var ErrUnusableSource = errors.New("the source cannot be used")

// readSource yields the records of a file of NDJSON, plain or compressed with gzip or zstd. It
// skips blank lines. key is nil if order is not checked. An error, which wraps ErrUnusableSource,
// is the last item.
func readSource(name string, id, key *ndjson.Field) iter.Seq2[SourceRecord, error] {
	return func(yield func(SourceRecord, error) bool) {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			yield(SourceRecord{}, fmt.Errorf("%w: %s is a folder; name a file of NDJSON",
				ErrUnusableSource, name))
			return
		}
		lines, err := ndjson.OpenFile(name)
		if err != nil {
			yield(SourceRecord{}, fmt.Errorf("%w: %w", ErrUnusableSource, err))
			return
		}
		defer func() { _ = lines.Close() }() // only read
		for {
			line, err := lines.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			var record SourceRecord
			if err == nil {
				if record, err = sourceRecord(line, id, key); err != nil {
					err = fmt.Errorf("%s: %w", lines.Where(), err)
				}
				record.Line = lines.Number()
			}
			if err != nil {
				yield(SourceRecord{}, fmt.Errorf("%w: %w", ErrUnusableSource, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

func sourceRecord(line []byte, id, key *ndjson.Field) (record SourceRecord, err error) {
	if record.ID, err = id.Of(line); err != nil {
		return record, fmt.Errorf("the record has no id: %w; choose another field with --id", err)
	}
	if key == nil {
		return record, nil
	}
	if record.Key, err = key.Of(line); err != nil {
		return record, fmt.Errorf("the record has no key: %w; choose another with --key", err)
	}
	return record, nil
}
