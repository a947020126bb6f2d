package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Finding is one kind of finding of a verification: its count and its first examples.
type Finding struct {
	Count    int64    `json:"count"`              // of all findings of the kind
	Examples []string `json:"examples,omitempty"` // the first of them, one sentence each

	described int64 // of Count, by the examples
}

// Add counts n findings, and describes them as one example unless there are limit examples already.
func (f *Finding) Add(n int64, limit int, format string, args ...any) {
	if f.Count += n; len(f.Examples) < limit {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
		f.described += n
	}
}

func (f *Finding) add(limit int, format string, args ...any) { f.Add(1, limit, format, args...) }

// Report is the result of a verification. The same archive and source give the same report.
type Report struct {
	Streams []string `json:"streams"` // NAME@MILLISECONDS
	Shards  int      `json:"shards"`  // of the Streams
	Ended   int      `json:"ended"`   // shards with a chain that is at its end
	Links   int64    `json:"links"`   // objects with a sound header
	Records int64    `json:"records"` // in these links
	Bytes   int64    `json:"bytes"`   // of the records' lines, uncompressed
	// FirstArrival and LastArrival are the range of the records' arrival times.
	FirstArrival time.Time `json:"firstArrival,omitzero"`
	LastArrival  time.Time `json:"lastArrival,omitzero"`

	// These are violations.
	Nothing   Finding `json:"nothingThere"`     // no archive in the folder, no link of a stream
	Missing   Finding `json:"missingLinks"`     // places where a link should go on and none does
	Overlaps  Finding `json:"overlappingLinks"` // links that begin before the one before them ends
	Damaged   Finding `json:"damaged"`          // objects that contradict their own header
	Misplaced Finding `json:"misplaced"`        // records outside their link's range or shard
	Disorder  Finding `json:"disorder"`         // records behind a later one of their shard
	Twice     Finding `json:"archivedTwice"`    // one position in two places
	Parents   Finding `json:"parents"`          // children that do not follow their parents' ends
	Stray     Finding `json:"stray"`            // files that look like links and are none

	// Gaps counts ranges that the stream trimmed before they were read: records may be lost there.
	// They are a violation, unless VerifyOptions.AllowGaps is set.
	Gaps        Finding `json:"gaps"`
	GapsAllowed bool    `json:"gapsAllowed,omitempty"`

	// These are not violations.
	Others Finding `json:"otherFiles"` // files that verification does not know

	Source *SourceReport `json:"source,omitempty"` // nil without a source
	Stream *StreamReport `json:"stream,omitempty"` // nil without a comparison with the stream
	Table  *TableReport  `json:"table,omitempty"`  // nil without a comparison with a table

	// Tails are the last parts of the shards, parents before children; see VerifyOptions.Since.
	Tails []Tail `json:"-"`
}

// SourceReport is the result of the comparison with a source.
type SourceReport struct {
	Name     string `json:"name,omitempty"`     // the file's; empty without a file
	Records  int64  `json:"records"`            // of the source
	Keys     int64  `json:"keys"`               // 0 if order is not checked
	KeyField string `json:"keyField,omitempty"` // VerifyOptions.Key
	Partial  bool   `json:"partial,omitempty"`  // VerifyOptions.Partial
	// Missing counts the source's records that are not in the archive.
	Missing Finding `json:"missing"`
	// OutOfOrder counts the records behind a later one of their key, by their first occurrences,
	// and KeysOutOfOrder the keys that have any.
	OutOfOrder     Finding `json:"outOfOrder"`
	KeysOutOfOrder int64   `json:"keysOutOfOrder"`
	// Unknown counts the archive's records that are not in the source. They are no violation if
	// Partial is set.
	Unknown Finding `json:"unknown"`
	// Doubled counts records that came from two positions of the stream: their program put them
	// twice, or a producer that gives its records no identity doubled them after a lost
	// acknowledgement. They are no violation if AllowDoubles is set.
	Doubled      Finding `json:"doubledInStream"`
	AllowDoubles bool    `json:"allowDoubles,omitempty"`

	found int64 // records of the source that are in the archive
}

// OK reports whether there is no violation.
func (r *Report) OK() bool { return len(r.violations()) == 0 }

const doubledRow = "doubled in the stream"

// row is a line of the text.
type row struct {
	name, good string
	finding    *Finding
	violation  bool
}

func (r *Report) rows() []row {
	rows := []row{
		{"nothing there", "", &r.Nothing, true},
		{"missing links", "every chain goes from its start to its tip or end", &r.Missing, true},
		{"overlapping links", "", &r.Overlaps, true},
		{"damaged objects", "counts and checksums are as the links say", &r.Damaged, true},
		{"misplaced records", "", &r.Misplaced, true},
		{"archived twice", "no position is in two places", &r.Twice, true},
		{"order in shards", "positions only grow", &r.Disorder, true},
		{"parents", "children follow their parents' ends", &r.Parents, true},
		{"stray objects", "", &r.Stray, true},
		{"gaps", "nothing was trimmed before it was read", &r.Gaps, !r.GapsAllowed},
		{"other files", "", &r.Others, false},
	}
	if r.Stream != nil {
		rows = append(rows, r.Stream.rows()...)
	}
	if r.Table != nil {
		rows = append(rows, r.Table.rows()...)
	}
	s := r.Source
	if s == nil {
		return rows
	}
	rows = append(rows, row{"missing", "every record of the source is here", &s.Missing, true})
	if s.Keys > 0 {
		rows = append(rows, row{
			"out of order", "first occurrences follow the source for every key",
			&s.OutOfOrder, true,
		})
	}
	return append(rows,
		row{"not in the source", "", &s.Unknown, !s.Partial},
		row{doubledRow, "no record is here from two positions", &s.Doubled, !s.AllowDoubles})
}

func (r *Report) violations() []string {
	var names []string
	for _, row := range r.rows() {
		if row.violation && row.finding.Count > 0 {
			names = append(names, fmt.Sprintf("%s: %d", row.name, row.finding.Count))
		}
	}
	return names
}

// WriteText writes the report for people, a line or more for every finding, and the verdict.
func (r *Report) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(table, format+"\n", args...)
		errs = append(errs, err)
	}
	line("archive\t%s", cmp.Or(strings.Join(r.Streams, ", "), "none"))
	line("\t%s in %s (%d ended), %s, %s", plural(r.Records, "record"),
		plural(int64(r.Shards), "shard"), r.Ended, plural(r.Links, "link"), bytesText(r.Bytes))
	if !r.FirstArrival.IsZero() {
		line("\tarrived %s to %s", formatTime(r.FirstArrival), formatTime(r.LastArrival))
	}
	if s := r.Source; s != nil {
		size := plural(s.Records, "record")
		if s.Keys > 0 {
			size += ", " + plural(s.Keys, "key")
			if s.KeyField != "" {
				size += " by " + s.KeyField
			}
		}
		line("source\t%s", strings.TrimPrefix(s.Name+": "+size, ": "))
	}
	if r.Stream != nil {
		line("stream\t%s", r.Stream.head())
	}
	if t := r.Table; t != nil {
		line("table\t%s, by %s: %s in %s", t.Name, t.Layout, plural(t.Records, "record"),
			plural(t.Objects, "object"))
	}
	for _, row := range r.rows() {
		if row.finding.Count == 0 && !row.always() {
			continue
		}
		line("%s\t%s", row.name, row.text(r.Source, &r.Gaps))
		for _, example := range row.finding.Examples {
			line("\t  %s", example)
		}
		if more := row.finding.Count - row.finding.described; more > 0 {
			line("\t  … and %s more", digits(more))
		}
	}
	line("verdict\t%s", r.verdict())
	if advice := r.advice(); advice != "" {
		line("\t  %s", advice)
	}
	errs = append(errs, table.Flush())
	return errors.Join(errs...)
}

func (r *Report) verdict() string {
	violations := r.violations()
	switch s := r.Source; {
	case len(violations) > 0:
		return "NOT OK: " + strings.Join(violations, "; ")
	case s != nil && s.Doubled.Count > 0:
		return "ok: every record of the source is here, some more than once, which was allowed"
	case s != nil:
		return "ok: every record of the source is here, and none twice"
	case r.Stream != nil:
		return r.Stream.verdict()
	case r.Records == 0:
		return "ok: the chains are whole, and hold no record"
	}
	return "ok: the chains are whole; give --source to compare with what was put, or " +
		"--against-stream with the stream"
}

// advice returns the next step after some verdicts, or "".
func (r *Report) advice() string {
	if t := r.Table; t != nil && t.Missing.Count+t.Differ.Count > 0 {
		return "runnel tables --again derives the table anew"
	}
	switch s := r.Source; {
	case s == nil || r.OK():
	case s.found == 0 && r.Records > 0:
		return "no record of the source is here: is it the archive of another stream, or the " +
			"wrong --id?"
	case s.Doubled.Count > 0 && !s.AllowDoubles:
		return "records of put --order plain and chained have no identity, so a retry may double " +
			"them: allow that with --allow-doubles"
	}
	return ""
}

// always reports whether the text has the row even if its count is zero.
func (r row) always() bool {
	return r.violation && r.name != "nothing there" || r.name == doubledRow || r.name == behindRow
}

func (r row) text(source *SourceReport, gaps *Finding) string {
	count := r.finding.Count
	switch {
	case count == 0 && r.good != "":
		return "0: " + r.good
	case count == 0:
		return "0"
	case r.name == "out of order":
		return fmt.Sprintf("%s, of %s", plural(count, "record"),
			plural(source.KeysOutOfOrder, "key"))
	case r.name == doubledRow && !r.violation:
		return digits(count) + ": allowed; their first occurrences count"
	case r.name == doubledRow:
		return digits(count) + ": the stream has these at two positions"
	case !r.violation:
		return digits(count) + ": no violation"
	case r.finding == gaps:
		return digits(count) + ": the stream may have removed records unread; --allow-gaps " +
			"accepts that"
	}
	return digits(count)
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return digits(n) + " " + noun + "s"
}

// digits writes a number with a comma between thousands.
func digits(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func bytesText(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return fmt.Sprintf("%d B", n)
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib*kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/kib/kib)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/kib/kib/kib)
}
