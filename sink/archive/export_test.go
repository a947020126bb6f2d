package archive

import (
	"bytes"
	"time"

	"github.com/runnel-stream/runnel"
)

// Rebase returns the object with another base of its change.
func Rebase(object []byte, base runnel.Position) ([]byte, error) {
	m := newMember(bytes.NewReader(object))
	link, err := m.readLink()
	if err != nil || link.Change == nil {
		return object, err
	}
	before, err := appendLink(nil, link)
	if err != nil {
		return nil, err
	}
	link.Change.Base = base
	after, err := appendLink(nil, link)
	return append(after, object[len(before):]...), err
}

// NewDirStoreOn returns the store in a folder of a test's file system.
var NewDirStoreOn = newDirStoreOn

// SetClock replaces the clock for the age of links, before the first Open.
func (a *Archive) SetClock(now func() time.Time) { a.now = now }
