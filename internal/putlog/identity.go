package putlog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/streamref"
)

// File is a file of the input.
type File struct {
	Name string // as it was given
	Size int64  // on the disk, in bytes
}

// Identity describes a load. Open continues a journal only for the same identity; files may have
// grown.
type Identity struct {
	Stream             string
	Created            time.Time // the stream's; compared in milliseconds
	Key, Format, Order string
	HashKey            string // the field of explicit hash keys; "" for none
	Keys               string // the file or table that gives hash keys; "" for none
	// Columns is the header of each file in csv, which has the columns of Key and HashKey.
	Columns []string
	Files   []File

	early bool // of an earlier version, which kept neither Keys nor Columns
}

// Errors of Open, Verify and Read. Open and Verify return them before anything is sent or changed.
var (
	// ErrOther is returned for a journal of another load.
	ErrOther = errors.New("the state is of another load")
	// ErrInput is returned for an input that differs from the part that an earlier run has read.
	ErrInput = errors.New("the input has changed since it was read before")
	// ErrNotJournal is returned for a file that is no journal.
	ErrNotJournal = errors.New("not a state of --resume")
	// ErrDamaged is returned for a journal with a broken frame that was on the disk before.
	ErrDamaged = errors.New("the state is damaged")
)

// differs compares the journal's load with the one of now, and returns an error for the first
// difference: ErrOther for another load, ErrInput for other files.
func (i Identity) differs(now Identity) error {
	for _, field := range []struct{ name, was, is string }{
		{"the stream", streamref.Name(i.Stream), streamref.Name(now.Stream)},
		{"the key", i.Key, now.Key},
		{"the hash key", strconv.Quote(i.HashKey), strconv.Quote(now.HashKey)},
		{"the source of keys", strconv.Quote(i.keys(now)), strconv.Quote(now.Keys)},
		{"the format", i.Format, now.Format},
		{"the order", i.Order, now.Order},
		{"the list of files", names(i.Files), names(now.Files)},
	} {
		if field.was != field.is {
			return fmt.Errorf("%w: %s was %s and is %s; repeat the earlier options, or name a new "+
				"state", ErrOther, field.name, field.was, field.is)
		}
	}
	if i.Created.UnixMilli() != now.Created.UnixMilli() {
		return fmt.Errorf("%w: the stream %s was created at %s, the one before at %s; name a new "+
			"state", ErrOther, now.Stream, stamp(now.Created), stamp(i.Created))
	}
	for at, file := range i.Files {
		if size := now.Files[at].Size; size < file.Size {
			return fmt.Errorf("%w: %s has %d bytes and had %d; bring it back, or name a new state",
				ErrInput, file.Name, size, file.Size)
		}
		if was, is := i.columns(at), now.columns(at); was != "" && was != is {
			return fmt.Errorf("%w: the header of %s is %q and was %q; bring it back, or name a "+
				"new state", ErrInput, file.Name, is, was)
		}
	}
	return nil
}

// keys is the source of keys. A state of an earlier version lacks it, and continues with any.
func (i Identity) keys(now Identity) string {
	if i.early {
		return now.Keys
	}
	return i.Keys
}

// columns is the header of a file; "" if there is none, none yet, or the state lacks it.
func (i Identity) columns(file int) string {
	if file < len(i.Columns) {
		return i.Columns[file]
	}
	return ""
}

// grown reports whether a file of the input is longer than it was.
func (i Identity) grown(now Identity) bool {
	return !slices.Equal(i.Files, now.Files)
}

func names(files []File) string {
	var all []string
	for _, file := range files {
		all = append(all, strconv.Quote(file.Name))
	}
	return strings.Join(all, " ")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
