package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// fields are the two fields of an event that serve as its key. They have different distributions.
func fields() []string { return []string{"repo", "type"} }

// event is one record to put.
type event struct {
	key  string
	data []byte
}

// input is the events with one field as their key.
type input struct {
	field   string
	file    string // each line has KEY, a tab and the event; every client reads this file
	records int
	bytes   int
	keys    int
	hottest int // the number of events of the commonest key
}

// prepare writes the events with their keys, once for all clients.
func prepare(cfg Config, field string) (input, error) {
	in := input{field: field}
	packed, err := os.Open(cfg.events())
	if err != nil {
		return in, err
	}
	defer packed.Close() //nolint:errcheck // only read
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return in, fmt.Errorf("%s: %w", cfg.events(), err)
	}
	out, err := os.CreateTemp("", "runnel-events-")
	if err != nil {
		return in, err
	}
	in.file = out.Name()
	w := bufio.NewWriter(out)
	counts := map[string]int{}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var fields map[string]json.RawMessage
		if err = json.Unmarshal(lines.Bytes(), &fields); err != nil {
			break
		}
		var key string
		if err = json.Unmarshal(fields[field], &key); err != nil {
			break
		}
		if _, err = fmt.Fprintf(w, "%s\t%s\n", key, lines.Bytes()); err != nil {
			break
		}
		in.records++
		in.bytes += len(lines.Bytes())
		counts[key]++
		in.hottest = max(in.hottest, counts[key])
	}
	in.keys = len(counts)
	return in, errors.Join(err, lines.Err(), w.Flush(), out.Close())
}

// load reads the file of prepare.
func load(file string) ([]event, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var events []event
	for line := range bytes.Lines(text) {
		key, data, found := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if !found {
			return nil, fmt.Errorf("%s: a line without a tab", file)
		}
		events = append(events, event{key, []byte(data)})
	}
	return events, nil
}
