package archive

import (
	"fmt"
	"time"
)

// StreamReport is the result of the comparison with the stream, record by record.
type StreamReport struct {
	Name string `json:"name"` // the stream's
	// Since is the arrival time from which on records are compared; zero if the stream still has
	// all of its records.
	Since    time.Time `json:"since,omitzero"`
	Compared int64     `json:"compared"` // records that are in both
	// Mapped is true if a compared link was written with Config.Map: then positions alone were
	// compared, and the number of the dropped records.
	Mapped bool `json:"mapped,omitempty"`

	// These are violations, and count records.
	Missing Finding `json:"missing"` // in the stream, and not in the archive up to its tip
	Extra   Finding `json:"extra"`   // in the archive, and not in the stream
	Differ  Finding `json:"differ"`  // in both, with other data, another key or another time
	// Shards counts shards of the stream that the archive lacks, although it has later records.
	Shards Finding `json:"shards"`

	// Behind counts the stream's records behind the archive's tips. They are a violation if
	// Complete is set.
	Behind   Finding `json:"behind"`
	Complete bool    `json:"complete,omitempty"`
	// Unchecked counts the archived records that could not be compared, because the stream may have
	// removed them. They are no violation.
	Unchecked Finding `json:"unchecked"`
}

func (s *StreamReport) rows() []row {
	equal := "data, keys and times are equal"
	if s.Mapped {
		equal = "positions alone were compared, since records were mapped"
	}
	return []row{
		{"not archived", "up to the tips every record of the stream is here", &s.Missing, true},
		{"not in the stream", "", &s.Extra, true},
		{"other than in the stream", equal, &s.Differ, true},
		{"shards not here", "", &s.Shards, true},
		{behindRow, "every record of the stream is archived", &s.Behind, s.Complete},
		{uncheckedRow, "", &s.Unchecked, false},
	}
}

const (
	behindRow    = "behind the stream"
	uncheckedRow = "not compared"
)

// head returns the line about the comparison.
func (s *StreamReport) head() string {
	from := "its beginning"
	if !s.Since.IsZero() {
		from = formatTime(s.Since)
	}
	return fmt.Sprintf("%s, from %s on: %s in both", s.Name, from, plural(s.Compared, "record"))
}

func (s *StreamReport) verdict() string {
	switch {
	case s.Compared == 0:
		return "ok: the chains are whole, and no record could be compared with the stream"
	case s.Behind.Count > 0:
		return "ok: the archive is as the stream, up to its tips"
	}
	return "ok: the archive is as the stream"
}
