package archive

import (
	"bytes"

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
