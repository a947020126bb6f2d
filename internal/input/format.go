package input

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/ndjson"
)

// Fields names the format of lines and the fields that are read from each line. A field is a name
// or a JSON pointer in ndjson, a column of the header in csv, and in lines the number of a
// blank-separated word, from 1 on.
type Fields struct {
	Format  string // ndjson, csv or lines
	Key     string // the partition key
	HashKey string // the explicit hash key; "" for none
	// HashKeyAlone accepts fields without Key: HashKey is then the partition key too.
	HashKeyAlone bool
	Weight       string // the weight of the line; "" for 1
}

// Format finds the values of a line. Its methods are not safe for concurrent use.
type Format struct {
	// Bytes counts the bytes that were read. It may be read concurrently.
	Bytes Bytes
	// Advice ends the text of each error about a line, as "; nothing newer was sent".
	Advice string

	name    string
	key     *field
	hashKey *field // nil for none
	weight  *field // nil for 1
	columns []*field
	header  []byte // of the file that is read, with csv
}

// field is a field of a line, as a flag names it.
type field struct {
	flag, name string
	column     int // with csv
	of         func(line []byte) (string, error)
}

// New returns the format with these fields. The error names the flag that is missing or wrong.
func New(fields Fields) (*Format, error) {
	if fields.Key == "" && (fields.HashKey == "" || !fields.HashKeyAlone) {
		return nil, exit.Usage("--key is missing: name the field that is the partition key")
	}
	f := &Format{name: fields.Format}
	var err error
	for _, wanted := range []struct {
		field      **field
		flag, name string
	}{
		{&f.key, "--key", fields.Key},
		{&f.hashKey, "--hash-key", fields.HashKey},
		{&f.weight, "--weight", fields.Weight},
	} {
		if wanted.name == "" {
			continue
		}
		if *wanted.field, err = f.field(wanted.flag, wanted.name); err != nil {
			return nil, err
		}
	}
	if f.key == nil {
		f.key = f.hashKey
	}
	return f, nil
}

// Names returns the format in which a whole line is a key.
func Names() *Format {
	whole := func(line []byte) (string, error) { return string(line), nil }
	return &Format{name: "names", key: &field{flag: "the name", of: whole}}
}

// Weighs reports whether a field of the line is its weight.
func (f *Format) Weighs() bool { return f.weight != nil }

// field returns the field that a flag names.
func (f *Format) field(flag, name string) (*field, error) {
	field := &field{flag: flag, name: name}
	switch f.name {
	case "ndjson":
		parsed, err := ndjson.ParseField(name)
		if err != nil {
			return nil, exit.Usage("%s: %w", flag, err)
		}
		field.of = parsed.Of
	case "csv":
		f.columns = append(f.columns, field)
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

// word returns the n-th word of a line, from 1 on.
func word(line []byte, number int) (string, error) {
	words := 0
	for w := range bytes.FieldsSeq(line) {
		if words++; words == number {
			return string(w), nil
		}
	}
	return "", fmt.Errorf("the line has %d words, no word %d", words, number)
}
