package kinesis

import (
	"fmt"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// input is a request's members. The model's table checks its constraints first, so the pointers of
// required members are not nil in validate. validate adds the rules that the model lacks; the
// operation checks rules that depend on a stream's state.
type input[In any] interface {
	*In
	validate(v *violations)
}

// violations collects the faults of a request.
type violations struct {
	texts []string    // the broken constraints, worded as AWS does
	other *wire.Error // an error of another kind, returned if no constraint is broken
}

// maxViolations is the most that AWS lists.
const maxViolations = 10

func (v *violations) err() error {
	switch {
	case len(v.texts) > 0:
		plural := "s"
		if len(v.texts) == 1 {
			plural = ""
		}
		return fail(codeValidation, "%d validation error%s detected: %s",
			len(v.texts), plural, strings.Join(v.texts, "; "))
	case v.other != nil:
		return v.other
	default:
		return nil
	}
}

// fail notes an error of another kind than the model's constraints; the first one counts.
func (v *violations) fail(err *wire.Error) {
	if v.other == nil {
		v.other = err
	}
}

// add notes that a member's value breaks a constraint.
func (v *violations) add(member, value, constraint string) {
	if len(v.texts) < maxViolations {
		v.texts = append(v.texts, fmt.Sprintf(
			"Value '%s' at '%s' failed to satisfy constraint: %s",
			wire.Echo(value), member, constraint))
	}
}

// missing notes that a required member is not there.
func (v *violations) missing(member string) {
	if len(v.texts) < maxViolations {
		v.texts = append(v.texts, "Value null at '"+member+
			"' failed to satisfy constraint: Member must not be null")
	}
}

// tooLong notes that a blob of so many bytes exceeds its maximum.
func (v *violations) tooLong(member string, length, limit int) {
	v.add(member, blobEcho(length), maxLength(int64(limit)))
}

// blobEcho returns a blob as AWS's messages show it.
func blobEcho(length int) string {
	return fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", length, length)
}

func minLength(n int64) string {
	return fmt.Sprint("Member must have length greater than or equal to ", n)
}

func maxLength(n int64) string {
	return fmt.Sprint("Member must have length less than or equal to ", n)
}
