package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/ndjson"
	"github.com/runnel-stream/runnel/keyspace"
)

// maxKey is the longest partition key, in characters (AWS, "PutRecord").
const maxKey = 256

// inputFormat finds the key of a record in a line. A line that it does not accept is a usage
// error.
type inputFormat struct {
	name string
	key  *inputField
	hash *inputField // of the explicit hash key; nil for none
	load *inputField // of the line's weight; nil for 1
	csv  []*inputField
	// header is the header of the file that is read, with csv.
	header []byte
	after  string     // the end of each error's text
	bytes  inputBytes // the bytes read so far
}

// inputField is a field of a line, as a flag names it.
type inputField struct {
	flag, name string
	column     int // with csv
	of         func(line []byte) (string, error)
}

// inputLine holds a line's values. It is valid only during the call that gets it.
type inputLine struct {
	key, hashKey string       // hashKey is "" without a field of that
	hash         keyspace.Key // with a hashKey
	weight       uint64
	data         []byte
	where        func() string
}

// newInputFormat returns the format ndjson (the key is a field or a JSON pointer), csv (the key is
// a column of the header) or lines (the key is the number of a blank-separated word, from 1 on).
func newInputFormat(name, key string) (*inputFormat, error) {
	if key == "" {
		return nil, exit.Usage("--key is missing: name the field that is the partition key")
	}
	format := &inputFormat{name: name}
	var err error
	format.key, err = format.field("--key", key)
	return format, err
}

// newNameFormat returns the format in which a whole line is a key.
func newNameFormat() *inputFormat {
	whole := func(line []byte) (string, error) { return string(line), nil }
	return &inputFormat{name: "names", key: &inputField{flag: "the name", of: whole}}
}

// withHashKey makes a field the explicit hash key; "" is none.
func (f *inputFormat) withHashKey(field string) (err error) {
	if field != "" {
		f.hash, err = f.field("--hash-key", field)
	}
	return err
}

// withWeight makes a field the line's weight; "" is none.
func (f *inputFormat) withWeight(field string) (err error) {
	if field != "" {
		f.load, err = f.field("--weight", field)
	}
	return err
}

// field returns the field that a flag names.
func (f *inputFormat) field(flag, name string) (*inputField, error) {
	field := &inputField{flag: flag, name: name}
	switch f.name {
	case "ndjson":
		parsed, err := ndjson.ParseField(name)
		if err != nil {
			return nil, exit.Usage("%s: %w", flag, err)
		}
		field.of = parsed.Of
	case "csv":
		f.csv = append(f.csv, field)
	case "lines":
		number, err := strconv.Atoi(name)
		if err != nil || number < 1 {
			return nil, exit.Usage("%s %s: with --format lines it is the number of a "+
				"blank-separated word, from 1 on", flag, name)
		}
		field.of = func(line []byte) (string, error) { return word(line, number) }
	default:
		return nil, exit.Usage("--format %s: want ndjson, csv or lines", f.name)
	}
	return field, nil
}

func word(line []byte, number int) (string, error) {
	words := 0
	for w := range bytes.FieldsSeq(line) {
		if words++; words == number {
			return string(w), nil
		}
	}
	return "", fmt.Errorf("the line has %d words, no word %d", words, number)
}

// start reads the header, if the format has one.
func (f *inputFormat) start(lines *ndjson.Lines) error {
	if f.name != "csv" {
		return nil
	}
	header, err := lines.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	f.header = bytes.Clone(header)
	names, err := splitCSV(header)
	if err != nil {
		return exit.Usage("%s: %w", lines.Where(), err)
	}
	for _, field := range f.csv {
		if field.column = slices.Index(names, field.name); field.column < 0 {
			return exit.Usage("%s: the header has no column %q; it has %s",
				lines.Where(), field.name, strings.Join(names, ", "))
		}
		field.of = func(line []byte) (string, error) {
			fields, err := splitCSV(line)
			if err != nil {
				return "", err
			}
			if len(fields) != len(names) {
				return "", fmt.Errorf("%d fields, the header has %d", len(fields), len(names))
			}
			return fields[field.column], nil
		}
	}
	return nil
}

// columns reads the header of a file; "" if it has none.
func (f *inputFormat) columns(ctx context.Context, name string) (string, error) {
	if f.header = nil; f.name != "csv" {
		return "", nil
	}
	err := f.readFile(ctx, name, func(inputLine) error { return exit.ErrStop })
	if errors.Is(err, exit.ErrStop) {
		err = nil
	}
	return string(f.header), err
}

func splitCSV(line []byte) ([]string, error) {
	fields, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return nil, fmt.Errorf("not a line of CSV: %w", err)
	}
	return fields, nil
}

// read calls take with each line of the files, in order. It ends with ctx, with errInterrupt.
func (f *inputFormat) read(
	ctx context.Context, names []string, take func(inputLine) error,
) error {
	for _, name := range names {
		if err := f.readFile(ctx, name, take); err != nil {
			return err
		}
	}
	return nil
}

func (f *inputFormat) readFile(
	ctx context.Context, name string, take func(inputLine) error,
) (err error) {
	file, title := os.Stdin, "standard input"
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return exit.Usage("%w", err)
		}
		title = name
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	in := console.UntilDone(ctx, file)
	defer func() { _ = in.Close() }()
	lines, err := ndjson.NewLines(title, counting{in, &f.bytes})
	if err != nil {
		return badInput(ctx, err)
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	if err := f.start(lines); err != nil {
		return err
	}
	where := lines.Where
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return badInput(ctx, err)
		}
		parsed, err := f.parse(line)
		if err != nil {
			return exit.Usage("%s: %w%s", lines.Where(), err, f.after)
		}
		parsed.where = where
		if err := take(parsed); err != nil {
			return err
		}
	}
}

// badInput returns the error for input that cannot be read, also if the reason is the end of ctx.
func badInput(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit.ErrInterrupt
	}
	return exit.Usage("%w", err)
}

// parse reads the fields of a line.
func (f *inputFormat) parse(line []byte) (l inputLine, err error) {
	l = inputLine{data: line, weight: 1}
	if l.key, err = f.key.of(line); err == nil {
		err = checkKey(l.key)
	}
	if err != nil {
		return l, f.key.fault(err)
	}
	if f.hash != nil {
		if l.hashKey, err = f.hash.of(line); err == nil {
			l.hash, err = keyspace.Parse(l.hashKey)
		}
		if err != nil {
			return l, f.hash.fault(err)
		}
	}
	if f.load != nil {
		if l.weight, err = f.load.number(line); err != nil {
			return l, f.load.fault(err)
		}
	}
	return l, nil
}

// place returns the hash key of the record.
func (l *inputLine) place() keyspace.Key {
	if l.hashKey == "" {
		return keyspace.Of(l.key)
	}
	return l.hash
}

// number returns the field as a number.
func (f *inputField) number(line []byte) (uint64, error) {
	text, err := f.of(line)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	return n, nil
}

// fault adds the field's name to an error.
func (f *inputField) fault(err error) error {
	return fmt.Errorf("%s: %w", strings.TrimSpace(f.flag+" "+f.name), err)
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
