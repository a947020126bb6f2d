package input

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/ndjson"
)

// readHeader reads the header of a file with csv, and finds the fields' columns in it.
func (f *Format) readHeader(lines *ndjson.Lines) error {
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
	for _, field := range f.columns {
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

func splitCSV(line []byte) ([]string, error) {
	fields, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return nil, fmt.Errorf("not a line of CSV: %w", err)
	}
	return fields, nil
}
