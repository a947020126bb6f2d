package table

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/archive"
)

const extension = ".ndjson.gz"

// base returns the name that a link's objects have in each of their folders.
func base(link *archive.Link) string {
	return fmt.Sprintf("%d-%s-%s%s", link.Stream.Created.UnixMilli(), link.ShardID,
		link.Previous.SortText(), extension)
}

// runs returns the folders of a link's records in the order of their first records, and how many
// runs of records each has: one, unless a record came late.
func (t *Table) runs(stored *archive.Stored) (folders []string, runs map[string]int, err error) {
	runs, last := map[string]int{}, ""
	for record, err := range stored.Records() {
		if err != nil {
			return nil, nil, err
		}
		folder := t.layout.folder(record.ArrivalTime)
		if folder == last {
			continue
		}
		if last = folder; runs[folder] == 0 {
			folders = append(folders, folder)
		}
		runs[folder]++
	}
	return folders, runs, nil
}

// derive writes the objects of a link: one reading of it for all folders with one run, and one for
// each other folder. So one object is in memory at a time. afresh sweeps the folders first.
func (t *Table) derive(ctx context.Context, stored *archive.Stored, afresh bool) error {
	folders, runs, err := t.runs(stored)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if afresh {
			if err := t.sweep(ctx, folder); err != nil {
				return err
			}
		}
	}
	once := func(folder string) bool { return runs[folder] == 1 }
	if err := t.write(ctx, stored, once); err != nil {
		return err
	}
	for _, folder := range folders {
		if once(folder) {
			continue
		}
		this := func(other string) bool { return other == folder }
		if err := t.write(ctx, stored, this); err != nil {
			return err
		}
	}
	return nil
}

// write writes the objects of the folders that it wants. The records of each are next to each other
// when the others are left out.
func (t *Table) write(
	ctx context.Context, stored *archive.Stored, wanted func(folder string) bool,
) error {
	p := &piece{table: t, base: base(stored.Link)}
	for record, err := range stored.Records() {
		if err != nil {
			return err
		}
		folder := t.layout.folder(record.ArrivalTime)
		if !wanted(folder) {
			continue
		}
		if folder != p.folder {
			if err := p.put(ctx); err != nil {
				return err
			}
			p.begin(folder)
		}
		if err := p.add(&record); err != nil {
			return err
		}
	}
	return p.put(ctx)
}

// piece is an object of a table under way.
type piece struct {
	table  *Table
	base   string
	folder string // "" before the first one
	packed bytes.Buffer
	gzip   *gzip.Writer
	line   []byte
}

func (p *piece) begin(folder string) {
	p.folder = folder
	p.packed.Reset()
	if p.gzip == nil {
		p.gzip = gzip.NewWriter(&p.packed)
		return
	}
	p.gzip.Reset(&p.packed)
}

func (p *piece) add(record *runnel.Record) error {
	p.line = append(archive.AppendRecord(p.line[:0], record), '\n')
	_, err := p.gzip.Write(p.line)
	return err
}

func (p *piece) put(ctx context.Context) error {
	if p.folder == "" {
		return nil
	}
	if err := p.gzip.Close(); err != nil {
		return err
	}
	return p.table.store.Put(ctx, p.table.path(p.folder, p.base), bytes.Clone(p.packed.Bytes()))
}

// parseBase reads a name of base.
func parseBase(
	name string,
) (created int64, shard runnel.ShardID, previous runnel.Position, ok bool) {
	text, is := strings.CutSuffix(name, extension)
	first, rest, some := strings.Cut(text, "-")
	fields := strings.Split(rest, "-")
	const key = 3 // fields of a position's key
	if !is || !some || len(fields) <= key {
		return 0, "", runnel.Position{}, false
	}
	at := len(fields) - key
	created, err := strconv.ParseInt(first, 10, 64)
	if err == nil {
		previous, err = runnel.ParsePosition(strings.Join(fields[at:], "-"))
	}
	return created, runnel.ShardID(strings.Join(fields[:at], "-")), previous, err == nil
}
