package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/ndjson"
)

// VerifyOptions are the options of a verification. The zero value checks the archive by itself.
type VerifyOptions struct {
	// Stream is the stream to verify, NAME or NAME@MILLISECONDS. Default: all of them; a source
	// needs exactly one.
	Stream string
	// Source is a file of NDJSON with the records that were put, in their order. Compression with
	// gzip and zstd is recognised. Default: none.
	Source string
	// ID and Key are fields of the source's records, and ID is a field of the archived ones, too.
	// Each is the name of a top-level field, or a JSON pointer. ID distinguishes the records and is
	// required with a source. Key is the unit of order. Default for Key: order is not checked.
	ID, Key string
	// Records yields the records that were put, instead of a file; order is checked if Ordered.
	Records iter.Seq2[SourceRecord, error]
	Ordered bool
	// Identify returns the id of an archived record; ok is false if it has none. Default: the
	// field ID of its data.
	Identify func(record *runnel.Record) (id string, ok bool)
	// AllowDoubles makes doubles no violation. A double is a record that the stream holds at two
	// positions; a producer that gives its records no identity leaves them (put --order plain and
	// chained).
	AllowDoubles bool
	// Partial declares that the source is a part of the records that were put: records that it does
	// not have are counted and no violation.
	Partial bool
	// AllowGaps makes gaps no violation: ranges that the stream trimmed before they were read are
	// only counted.
	AllowGaps bool
	// Since splits each shard for a comparison with its stream, see Report.Tails: the stream has
	// the records that arrived since then. Default: the tails are the whole chains.
	Since time.Time
	// Examples is the number of examples that each finding describes. Default 10, at most 1,000.
	Examples int
}

func (o VerifyOptions) withDefaults() VerifyOptions {
	if o.Examples == 0 {
		o.Examples = 10
	}
	return o
}

// Validate reports every fault of the options.
func (o VerifyOptions) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("archive: "+format, args...))
		}
	}
	source := o.Source != "" || o.Records != nil
	fault(o.Source != "" && o.Records != nil,
		"Source is %q and Records is set: want one of the two", o.Source)
	fault(source && o.ID == "" && (o.Identify == nil || o.Source != ""),
		"ID is missing: want the field that distinguishes the records (--id)")
	fault(!source && (o.ID != "" || o.Key != ""), "Source is missing: want the file of the "+
		"records that were put (--source), to compare their ID and Key with the archive's")
	for _, field := range []struct{ name, text string }{{"ID", o.ID}, {"Key", o.Key}} {
		_, err := optionalField(field.text)
		fault(err != nil, "%s is %q: %w", field.name, field.text, err)
	}
	fault(o.Examples < 0 || o.Examples > 1000, "Examples is %d: want 0 (for 10) to 1000",
		o.Examples)
	return errors.Join(faults...)
}

// Verify checks the archive in a folder. The report lists the faults of the archive. An error means
// that it could not be checked: ErrUnusableSource for an unusable source, fs.ErrNotExist if there
// is no folder and fs.ErrInvalid if it is a file, ErrStreamNotFound if the archive has others than
// options.Stream, or the error of reading. A folder without an archive, and a stream without a
// link, are violations: the report is OK only after a comparison.
//
// From the archive alone Verify can show three facts: every shard's links follow one another from
// the start to the tip or the end, also across splits and merges; the records are those that the
// links describe; and no position occurs twice. It needs a source to find records missing behind
// the tip, and to check the order of each key.
//
// It may run beside writers, and reads the links that are committed at the time.
func Verify(ctx context.Context, dir string, options VerifyOptions) (*Report, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	reader, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return reader.Verify(ctx, options)
}

// Verify checks the archive; see the function Verify.
func (r *Reader) Verify(ctx context.Context, options VerifyOptions) (*Report, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	v := &verification{
		reader: r, store: newAhead(ctx, r.store, wholeRoom), options: options.withDefaults(),
		report: &Report{Streams: []string{}, GapsAllowed: options.AllowGaps},
	}
	defer v.store.close()
	streams, err := v.streams(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if err := v.readSource(ctx); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	for _, stream := range streams {
		v.report.Streams = append(v.report.Streams, stream.String())
		if err := v.stream(ctx, stream); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	if v.ledger != nil {
		v.ledger.close()
	}
	return v.report, nil
}

// ErrStreamNotFound is returned if the archive has streams, but none of the requested name.
var ErrStreamNotFound = errors.New("no stream")

type verification struct {
	reader  *Reader
	store   *ahead
	options VerifyOptions
	report  *Report
	ledger  *ledger // nil without a source
}

// streams returns the streams to verify.
func (v *verification) streams(ctx context.Context) ([]Stream, error) {
	listing, err := v.store.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, base := range listing.Objects {
		v.stray("", base)
	}
	for _, base := range listing.Folders {
		if _, err := parseStream(base); err != nil && base != TablesFolder {
			v.report.Others.add(v.options.Examples, "%s/", base)
		}
	}
	all, err := v.reader.Streams(ctx)
	if err != nil {
		return nil, err
	}
	var chosen []Stream
	var names []string
	for _, stream := range all {
		names = append(names, stream.String())
		if v.options.Stream == "" || stream.Is(v.options.Stream) {
			chosen = append(chosen, stream)
		}
	}
	there := "it has " + strings.Join(names, ", ")
	compared := v.options.Source != "" || v.options.Records != nil
	switch {
	case len(names) == 0:
		v.report.Nothing.add(v.options.Examples, "the folder holds no archive: name the folder "+
			"of runnel archive --to, which holds NAME@MILLISECONDS")
	case len(chosen) == 0:
		return nil, fmt.Errorf("%w %q in the archive: %s", ErrStreamNotFound,
			v.options.Stream, there)
	case compared && len(chosen) > 1:
		return nil, fmt.Errorf("%w: there are several streams, and a source belongs to one: "+
			"choose it with --stream; %s", ErrUnusableSource, there)
	}
	return chosen, nil
}

// stray reports an object that is no link: a violation if it looks like one.
func (v *verification) stray(folder, base string) {
	finding := &v.report.Others
	if strings.HasSuffix(base, extension) {
		finding = &v.report.Stray
	}
	finding.add(v.options.Examples, "%s", strings.TrimPrefix(folder+"/"+base, "/"))
}

// optionalField reads a field's name; nil for none.
func optionalField(text string) (*ndjson.Field, error) {
	if text == "" {
		return nil, nil
	}
	field, err := ndjson.ParseField(text)
	return &field, err
}

func (v *verification) readSource(ctx context.Context) error {
	source, ordered := v.options.Records, v.options.Ordered
	id, err := optionalField(v.options.ID)
	if err != nil {
		return err
	}
	if v.options.Source != "" {
		key, err := optionalField(v.options.Key)
		if err != nil {
			return err
		}
		source, ordered = readSource(v.options.Source, id, key), key != nil
	}
	if source == nil {
		return nil
	}
	if v.options.Identify == nil {
		v.options.Identify = func(record *runnel.Record) (string, bool) {
			text, err := id.Of(record.Data)
			return text, err == nil
		}
	}
	v.report.Source = &SourceReport{
		Name: v.options.Source, KeyField: v.options.Key, Partial: v.options.Partial,
		AllowDoubles: v.options.AllowDoubles,
	}
	v.ledger = newLedger(v.report.Source, v.options.Examples)
	for record, err := range source {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = v.ledger.expect(record, ordered)
		}
		if err != nil {
			return err
		}
	}
	if len(v.ledger.records) == 0 {
		return fmt.Errorf("%w: %s has no records, and a comparison with nothing proves nothing",
			ErrUnusableSource, cmp.Or(v.options.Source, "it"))
	}
	return nil
}
