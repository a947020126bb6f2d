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
