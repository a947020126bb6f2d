package rollup

import (
	"errors"
	"strings"

	"github.com/runnel-stream/runnel"
)

// badRecord is a record that cannot be folded.
type badRecord struct {
	record *runnel.Record
	err    error
}

// createBad makes the table of bad records, with these types of the data and the arrival.
func (s *shape) createBad(data, arrival string) string {
	return "create table if not exists " + s.bad + " (stream text not null, shard text not null, " +
		"position text not null, reason text not null, partition_key text not null, data " + data +
		" not null, arrived_at " + arrival + " not null, primary key (stream, shard, position))"
}

func badReason(err error) string {
	if bad := new(BadError); errors.As(err, &bad) {
		return cleaned(bad.Reason)
	}
	return cleaned(err.Error())
}

// cleaned returns a text that databases take.
func cleaned(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
