package rows

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is a result that is one line of text: its cells, from left to right.
type Row interface{ Cells() []string }

// Line is a row of nothing but text, for tables within a report.
type Line []string

// Cells implements Row.
func (l Line) Cells() []string { return l }

// Report is a result that is several lines of text.
type Report interface{ WriteText(w io.Writer) error }

// Printer prints results to one writer. It is buffered: the caller calls Flush after the last
// result. It is not safe for concurrent use.
type Printer struct {
	out   *bufio.Writer
	json  *json.Encoder     // nil for text
	table *tabwriter.Writer // of aligned text; nil otherwise
}

// bufferSize is large enough that millions of short lines take few writes.
const bufferSize = 1 << 16

// New returns a printer to out. Its JSON has the letters <, > and & as \u003c, \u003e and \u0026.
func New(out io.Writer, asJSON bool) *Printer {
	p := &Printer{out: bufio.NewWriterSize(out, bufferSize)}
	if asJSON {
		p.json = json.NewEncoder(p.out)
	}
	return p
}

// NewVerbatim returns a printer that leaves <, > and & in JSON as they are.
func NewVerbatim(out io.Writer, asJSON bool) *Printer {
	p := New(out, asJSON)
	if asJSON {
		p.json.SetEscapeHTML(false)
	}
	return p
}

// Align aligns the columns of the rows after it, which Flush then prints. It does nothing for JSON.
func (p *Printer) Align() {
	if p.json == nil {
		p.table = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	}
}

// Head prints the names of the columns, and aligns the rows after it. It does nothing for JSON.
func (p *Printer) Head(names ...string) error {
	if p.json != nil {
		return nil
	}
	p.Align()
	return p.Row(Line(names))
}

// Row prints a row. Without Align its cells are separated by tabs.
func (p *Printer) Row(row Row) error {
	if p.json != nil {
		return p.json.Encode(row)
	}
	line := strings.Join(row.Cells(), "\t") + "\n"
	if p.table != nil {
		_, err := io.WriteString(p.table, line)
		return err
	}
	_, err := p.out.WriteString(line)
	return err
}

// Report prints a report.
func (p *Printer) Report(report Report) error {
	if p.json != nil {
		return p.json.Encode(report)
	}
	return report.WriteText(p.out)
}

// Flush writes the buffered results.
func (p *Printer) Flush() error {
	if p.table != nil {
		if err := p.table.Flush(); err != nil {
			return err
		}
	}
	return p.out.Flush()
}

// Print prints a single report to out.
func Print(out io.Writer, asJSON bool, report Report) error {
	p := New(out, asJSON)
	if err := p.Report(report); err != nil {
		return err
	}
	return p.Flush()
}
