package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Link is one commit: the description of an object and its records.
type Link struct {
	Stream   Stream          // with ShardID, the chain that it belongs to
	ShardID  runnel.ShardID  // the shard of all its records
	Previous runnel.Position // the end of the link before; runnel.Start in the first one
	End      runnel.Position // the last position that the link covers; runnel.End in the last one
	Count    int64           // records
	Bytes    int64           // of the records' lines, uncompressed
	CRC      uint32          // CRC-32C of the same
	// Mapped is true if the link was written with Config.Map, and Dropped counts the records that
	// Map dropped.
	Mapped  bool
	Dropped int64
	// Writer is the name of the committing writer. Nonce is a random text of this very attempt: a
	// writer whose answer was lost recognises its own object by it.
	Writer, Nonce string
	// FirstArrival and LastArrival are the arrival times of the first and the last record, zero if
	// unknown.
	FirstArrival, LastArrival time.Time
	// Parents is set in the first link of a shard that has parents.
	Parents []Parent
	// Gap is set if the stream removed records behind Previous before they were read. It begins at
	// Previous, and it may reach End.
	Gap *sink.Gap
	// State is the state of the reader at End, as sink.Batch.State returned it: at most MaxState
	// bytes. A link without records may carry one: the reader dropped the records in between.
	State []byte
	// Change is set instead of State if the link holds only the state's change.
	Change *Change
}

// Change is the change of a reader's state since the link before.
type Change struct {
	// Base is the previous end of the link that holds the last whole state. The changes of all
	// links behind that one, up to this one, make the state at this link's End. A link that is its
	// own base holds the change since an empty state, which is a whole state.
	Base runnel.Position
	// Delta is an aggregate.Delta, compressed with deflate (RFC 1951). It holds indices of the
	// link's records, from 0 on, and its lanes are those of these records. Empty: no change.
	Delta []byte
}

// MaxState is the largest state of a reader that a link can hold, in bytes: 16 MiB.
const MaxState = 16 << 20

// Stream is a stream of the archive. A stream that was deleted and created again is another.
type Stream struct {
	Name    string    // as in the calls of the API
	Created time.Time // in milliseconds, UTC
}

// String returns the name of the stream's folder.
func (s Stream) String() string {
	return s.Name + "@" + strconv.FormatInt(s.Created.UnixMilli(), 10)
}

// Is reports whether a name, as NAME or NAME@MILLISECONDS, is that of the stream.
func (s Stream) Is(name string) bool { return name == s.Name || name == s.String() }

// Parent is a parent of a shard, as the shard's first link names it.
type Parent struct {
	ShardID runnel.ShardID // the parent's id
	// Link is the previous end of the parent's last link, which ends at runnel.End.
	Link runnel.Position
	// None is set, instead of Link, for a parent that has no chain in the archive.
	None bool
}

// ErrUnusableLink is returned for an object that is not a link of its chain: damaged, in the wrong
// place, or written by another program.
var ErrUnusableLink = errors.New("not a link of this chain")

// ErrStateTooLarge is returned by a Writer that is to commit a state of more than MaxState bytes.
var ErrStateTooLarge = errors.New("the reader's state is too large for a link")

// These are the values of a link's format fields. A reader refuses a link of a higher version,
// because the link may hold fields that it must not ignore. So a link is written in the lowest
// version that covers all its fields: without the filter of doubles, an archive is readable by
// older programs.
const (
	linkFormat    = "runnel.archive"
	plainVersion  = 1        // without a state
	stateVersion  = 2        // with State: a program that ignored it would deliver doubles
	changeVersion = 3        // with Change: a program that did not know it would find no state
	linkForm      = "object" // link and records in one object
)

// maxLinkSize is a limit on the record bytes that a link may declare; Config.Size is far below it.
const maxLinkSize = 1 << 40

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

type linkJSON struct {
	Format       string         `json:"format"`
	Version      int            `json:"version"`
	Form         string         `json:"form"`
	Stream       string         `json:"stream"`
	Created      int64          `json:"created"`
	ShardID      runnel.ShardID `json:"shardId"`
	Previous     string         `json:"previous"`
	End          string         `json:"end"`
	Count        int64          `json:"count"`
	Bytes        int64          `json:"bytes"`
	CRC          string         `json:"crc32c"`
	Writer       string         `json:"writer"`
	Nonce        string         `json:"nonce"`
	FirstArrival string         `json:"firstArrival,omitempty"`
	LastArrival  string         `json:"lastArrival,omitempty"`
	Parents      []parentJSON   `json:"parents,omitempty"`
	Gap          *gapJSON       `json:"gap,omitempty"`
	Change       *changeJSON    `json:"change,omitempty"`
	Mapped       bool           `json:"mapped,omitempty"`
	Dropped      int64          `json:"dropped,omitempty"`
	State        []byte         `json:"state,omitempty"` // base64 (RFC 4648, padded); the last
}

type changeJSON struct {
	Base  string `json:"base"`  // a position's key
	Delta []byte `json:"delta"` // base64
}

type parentJSON struct {
	ShardID runnel.ShardID `json:"shardId"`
	Link    string         `json:"link"` // a position's key, or noParent
}

type gapJSON struct {
	After  string `json:"after"`
	Before string `json:"before"`
	Reason string `json:"reason,omitempty"`
}

const noParent = "none" // not a position's key

// MarshalJSON writes the link as it is in the object's header.
func (l Link) MarshalJSON() ([]byte, error) {
	wire := linkJSON{
		Format: linkFormat, Version: plainVersion, Form: linkForm,
		Stream: l.Stream.Name, Created: l.Stream.Created.UnixMilli(), ShardID: l.ShardID,
		Previous: l.Previous.SortText(), End: l.End.SortText(),
		Count: l.Count, Bytes: l.Bytes, CRC: fmt.Sprintf("%08x", l.CRC),
		Mapped: l.Mapped, Dropped: l.Dropped,
		Writer: l.Writer, Nonce: l.Nonce,
		FirstArrival: formatTime(l.FirstArrival), LastArrival: formatTime(l.LastArrival),
	}
	switch {
	case l.Change != nil:
		wire.Version = changeVersion
		wire.Change = &changeJSON{Base: l.Change.Base.SortText(), Delta: l.Change.Delta}
	case len(l.State) > 0:
		wire.Version, wire.State = stateVersion, l.State
	}
	for _, parent := range l.Parents {
		link := noParent
		if !parent.None {
			link = parent.Link.SortText()
		}
		wire.Parents = append(wire.Parents, parentJSON{ShardID: parent.ShardID, Link: link})
	}
	if l.Gap != nil {
		wire.Gap = &gapJSON{l.Gap.After.SortText(), l.Gap.Before.SortText(), l.Gap.Reason}
	}
	return json.Marshal(wire)
}

// UnmarshalJSON reads the text of MarshalJSON; it skips fields that it does not know. For any other
// text it returns an error that wraps ErrUnusableLink.
func (l *Link) UnmarshalJSON(text []byte) error {
	var wire linkJSON
	if err := json.Unmarshal(text, &wire); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusableLink, err)
	}
	if err := wire.check(); err != nil {
		return err
	}
	crc, err := strconv.ParseUint(wire.CRC, 16, 32)
	read := Link{
		Stream:  Stream{Name: wire.Stream, Created: time.UnixMilli(wire.Created).UTC()},
		ShardID: wire.ShardID, Count: wire.Count, Bytes: wire.Bytes, CRC: uint32(crc),
		Mapped: wire.Mapped, Dropped: wire.Dropped,
		Writer: wire.Writer, Nonce: wire.Nonce,
	}
	faults := []error{err}
	parse := func(key string) runnel.Position {
		position, err := runnel.ParsePosition(key)
		faults = append(faults, err)
		return position
	}
	parseTime := func(text string) time.Time {
		t, err := readTime(text)
		faults = append(faults, err)
		return t
	}
	read.Previous, read.End = parse(wire.Previous), parse(wire.End)
	read.FirstArrival, read.LastArrival = parseTime(wire.FirstArrival), parseTime(wire.LastArrival)
	for _, parent := range wire.Parents {
		if parent.Link == noParent {
			read.Parents = append(read.Parents, Parent{ShardID: parent.ShardID, None: true})
			continue
		}
		read.Parents = append(read.Parents,
			Parent{ShardID: parent.ShardID, Link: parse(parent.Link)})
	}
	if wire.Gap != nil {
		read.Gap = &sink.Gap{
			After: parse(wire.Gap.After), Before: parse(wire.Gap.Before), Reason: wire.Gap.Reason,
		}
	}
	if len(wire.State) > 0 {
		read.State = wire.State
	}
	if wire.Change != nil {
		read.Change = &Change{Base: parse(wire.Change.Base), Delta: wire.Change.Delta}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusableLink, err)
	}
	if !read.Previous.Less(read.End) {
		return fmt.Errorf("%w: it ends at %s, which is not after its beginning, %s",
			ErrUnusableLink, read.End, read.Previous)
	}
	if read.Change != nil && read.Previous.Less(read.Change.Base) {
		return fmt.Errorf("%w: its state is based on %s, which is after its beginning, %s",
			ErrUnusableLink, read.Change.Base, read.Previous)
	}
	*l = read
	return nil
}

func (w *linkJSON) check() error {
	switch {
	case w.Format != linkFormat:
		return fmt.Errorf("%w: its format is %q, want %q", ErrUnusableLink, w.Format, linkFormat)
	case w.Version > changeVersion || w.Form != linkForm:
		return fmt.Errorf("%w: it is of form %q, version %d, and this runnel knows %q up to %d: "+
			"use a newer runnel", ErrUnusableLink, w.Form, w.Version, linkForm, changeVersion)
	case w.Version < 1 || w.Count < 0 || w.Dropped < 0 || w.Bytes < 0 || w.Bytes > maxLinkSize:
		return fmt.Errorf("%w: version %d, count %d, dropped %d, bytes %d", ErrUnusableLink,
			w.Version, w.Count, w.Dropped, w.Bytes)
	case len(w.State) > MaxState:
		return fmt.Errorf("%w: a state of %d bytes: at most %d", ErrUnusableLink, len(w.State),
			MaxState)
	case w.Version < stateVersion && len(w.State) > 0:
		return fmt.Errorf("%w: version %d has no state, and it has one", ErrUnusableLink, w.Version)
	case (w.Version == changeVersion) != (w.Change != nil), w.Change != nil && len(w.State) > 0:
		return fmt.Errorf("%w: version %d, with a change: %v, with a state: %v", ErrUnusableLink,
			w.Version, w.Change != nil, len(w.State) > 0)
	}
	return nil
}

func formatTime(t time.Time) string {
	if !hasTime(t) {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// hasTime reports whether t is known and can be written in RFC 3339.
func hasTime(t time.Time) bool {
	year := t.UTC().Year()
	return !t.IsZero() && year >= 0 && year <= 9999
}

func readTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text) // with any fraction
	return t.UTC(), err
}
