package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// SourceRecord is a record that was put, as verification knows it.
type SourceRecord struct {
	ID  string // tells records apart; of two records with one ID, the first in the source is first
	Key string // records of one key are in order; "" if order is not checked
}

// ErrSource is returned for a source that cannot be verified against. Nothing is wrong with
// the archive.
var ErrSource = errors.New("the source cannot be used")

const maxSourceLine = 64 << 20

// readSource yields the records of a file of NDJSON, plain or compressed with gzip or zstd.
// Blank lines are skipped. An error, which wraps ErrSource, is the last thing that it yields.
func readSource(name string, id, key field) iter.Seq2[SourceRecord, error] {
	return func(yield func(SourceRecord, error) bool) {
		fail := func(err error) { yield(SourceRecord{}, fmt.Errorf("%w: %w", ErrSource, err)) }
		file, err := os.Open(name)
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = file.Close() }() // only read
		plain, err := decompress(file)
		if err != nil {
			fail(fmt.Errorf("%s: %w", name, err))
			return
		}
		defer func() { _ = plain.Close() }() // only read
		lines := bufio.NewScanner(plain)
		lines.Buffer(make([]byte, 0, 64<<10), maxSourceLine)
		number := 0
		for lines.Scan() {
			number++
			line := lines.Bytes()
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			record, err := sourceRecord(line, id, key)
			if err != nil {
				fail(fmt.Errorf("%s, line %d: %w", name, number, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			fail(fmt.Errorf("%s, after line %d: %w", name, number, err))
		}
	}
}

func sourceRecord(line []byte, id, key field) (SourceRecord, error) {
	if !json.Valid(line) {
		return SourceRecord{}, errors.New("it is not JSON")
	}
	var record SourceRecord
	var ok bool
	if record.ID, ok = id.text(line); !ok {
		return SourceRecord{}, fmt.Errorf("it has no field %q to be known by; choose another "+
			"with --id", id.name())
	}
	if key == nil {
		return record, nil
	}
	if record.Key, ok = key.text(line); !ok {
		return SourceRecord{}, fmt.Errorf("it has no key %q; choose another with --key", key.name())
	}
	return record, nil
}

// decompress recognises gzip and zstd by their first bytes.
func decompress(file io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(file, 256<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}
