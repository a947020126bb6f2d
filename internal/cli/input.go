package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/ndjson"
)

// maxKey is the longest partition key, in characters (AWS, "PutRecord").
const maxKey = 256

// inputFormat turns a line into a record's key. What it does not accept is a usage error.
type inputFormat struct {
	name  string
	key   string
	keyOf func(line []byte) (string, error)
	start func(lines *ndjson.Lines) error // reads a header, if the format has one
	bytes inputBytes                      // that were read
}

// newInputFormat knows ndjson (the key is a field or a JSON pointer), csv (the key is a column
// of the header) and lines (the key is the number of a blank-separated word, from 1 on).
func newInputFormat(name, key string) (*inputFormat, error) {
	if key == "" {
		return nil, usageError("--key is missing: name the field that is the partition key")
	}
	format := &inputFormat{name: name, key: key, start: func(*ndjson.Lines) error { return nil }}
	switch name {
	case "ndjson":
		field, err := ndjson.ParseField(key)
		if err != nil {
			return nil, usageError("--key: %w", err)
		}
		format.keyOf = field.Of
	case "csv":
		format.startCSV()
	case "lines":
		number, err := strconv.Atoi(key)
		if err != nil || number < 1 {
			return nil, usageError("--key %s: with --format lines the key is the number of a "+
				"blank-separated word, from 1 on", key)
		}
		format.keyOf = func(line []byte) (string, error) {
			words := bytes.Fields(line)
			if number > len(words) {
				return "", fmt.Errorf("the line has %d words, no word %d", len(words), number)
			}
			return string(words[number-1]), nil
		}
	default:
		return nil, usageError("--format %s: want ndjson, csv or lines", name)
	}
	return format, nil
}

func (f *inputFormat) startCSV() {
	column, columns := 0, 0
	split := func(line []byte) ([]string, error) {
		fields, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return nil, fmt.Errorf("not a line of CSV: %w", err)
		}
		return fields, nil
	}
	f.start = func(lines *ndjson.Lines) error {
		header, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		names, err := split(header)
		if err != nil {
			return usageError("%s: %w", lines.Where(), err)
		}
		if column = slices.Index(names, f.key); column < 0 {
			return usageError("%s: the header has no column %q; it has %s",
				lines.Where(), f.key, strings.Join(names, ", "))
		}
		columns = len(names)
		return nil
	}
	f.keyOf = func(line []byte) (string, error) {
		fields, err := split(line)
		if err != nil {
			return "", err
		}
		if len(fields) != columns {
			return "", fmt.Errorf("%d fields, the header has %d", len(fields), columns)
		}
		return fields[column], nil
	}
}

// read calls take with each line of the files and its key, in order. The line is valid during
// the call.
func (f *inputFormat) read(
	names []string, take func(key string, line []byte, where string) error,
) error {
	for _, name := range names {
		if err := f.readFile(name, take); err != nil {
			return err
		}
	}
	return nil
}

func (f *inputFormat) readFile(
	name string, take func(key string, line []byte, where string) error,
) (err error) {
	file, title := os.Stdin, "standard input"
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return usageError("%w", err)
		}
		title = name
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	lines, err := ndjson.NewLines(title, counting{file, &f.bytes})
	if err != nil {
		return usageError("%w", err)
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	if err := f.start(lines); err != nil {
		return err
	}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return usageError("%w", err)
		}
		key, err := f.keyOf(line)
		if err == nil {
			err = checkKey(key)
		}
		if err != nil {
			return usageError("%s: --key %s: %w; nothing newer was sent", lines.Where(), f.key, err)
		}
		if err := take(key, line, lines.Where()); err != nil {
			return err
		}
	}
}

func checkKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case n == 0:
		return errors.New("the key is empty")
	case n > maxKey:
		return fmt.Errorf("the key has %d characters, a partition key has at most %d", n, maxKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not valid UTF-8")
	default:
		return nil
	}
}
