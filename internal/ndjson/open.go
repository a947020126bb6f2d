// Package ndjson reads files line by line, plain or compressed by gzip or zstd, and extracts a
// field from a line of JSON. The commands use it for newline-delimited JSON and csv input. A line
// that is cut off by a read error is never returned.
package ndjson

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// MaxLine is the longest line that Lines reads, in bytes. It is above the largest record of
// Kinesis (10 MiB).
const MaxLine = 16 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// Decompress returns a reader of r's content. It recognises gzip and zstd by their first bytes, and
// passes anything else unchanged. Closing it does not close r.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return gzip.NewReader(buffered)
	case bytes.HasPrefix(head, zstdMagic):
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	default:
		return io.NopCloser(buffered), nil
	}
}

// Lines reads a file line by line. It is not safe for concurrent use.
type Lines struct {
	name    string
	scanner *bufio.Scanner
	number  int
	closers []io.Closer
}

// OpenFile opens a file, compressed or not; "-" is standard input.
func OpenFile(name string) (*Lines, error) {
	if name == "-" {
		lines, err := NewLines("standard input", os.Stdin)
		return lines, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	lines, err := NewLines(name, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	lines.closers = append(lines.closers, file)
	return lines, nil
}

// NewLines reads lines from r, compressed or not. Errors begin with the name.
func NewLines(name string, r io.Reader) (*Lines, error) {
	content, err := Decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	scanner := bufio.NewScanner(content)
	scanner.Buffer(make([]byte, 0, 1<<16), MaxLine)
	scanner.Split(func(data []byte, atEnd bool) (advance int, line []byte, err error) {
		if atEnd && scanner.Err() != nil && bytes.IndexByte(data, '\n') < 0 {
			return len(data), nil, nil // a read error has cut the line off
		}
		return bufio.ScanLines(data, atEnd)
	})
	return &Lines{name: name, scanner: scanner, closers: []io.Closer{content}}, nil
}

// Next returns the next line that is not blank, without its line break, or io.EOF. The line
// is valid until the next call.
func (l *Lines) Next() ([]byte, error) {
	for l.scanner.Scan() {
		l.number++
		line := bytes.TrimSuffix(l.scanner.Bytes(), []byte("\r"))
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
	err := l.scanner.Err()
	switch {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s, line %d: longer than %d MiB", l.name, l.number+1, MaxLine>>20)
	default:
		return nil, fmt.Errorf("%s, after line %d: %w", l.name, l.number, err)
	}
}

// Where names the line that Next returned last, as "events.ndjson, line 12".
func (l *Lines) Where() string { return fmt.Sprintf("%s, line %d", l.name, l.number) }

// Number is the number of the line that Next returned last, from 1.
func (l *Lines) Number() int64 { return int64(l.number) }

// Close releases the file.
func (l *Lines) Close() error {
	var errs []error
	for _, closer := range l.closers {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}
