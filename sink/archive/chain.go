package archive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// extension is the file extension of links. Only links have it.
const extension = ".ndjson.gz"

// TablesFolder is the folder of the tables that are derived from the archive; see package table.
const TablesFolder = "tables"

// folder returns the folder of a shard's links.
func folder(stream Stream, shard runnel.ShardID) string {
	return path.Join(stream.String(), string(shard))
}

// objectName returns the name of the link that follows previous.
func objectName(folder string, previous runnel.Position) string {
	return folder + "/" + previous.SortText() + extension
}

// parseObject returns the previous end from an object's base name.
func parseObject(base string) (runnel.Position, error) {
	key, ok := strings.CutSuffix(base, extension)
	if !ok {
		return runnel.Position{}, fmt.Errorf("%w: %q", runnel.ErrPositionSyntax, base)
	}
	previous, err := runnel.ParsePosition(key)
	if err == nil && previous == runnel.End() {
		err = fmt.Errorf("%w: nothing follows the end", runnel.ErrPositionSyntax)
	}
	return previous, err
}

// parseStream reads the text of Stream.String.
func parseStream(base string) (Stream, error) {
	at := strings.LastIndexByte(base, '@')
	if at >= 0 {
		created, err := strconv.ParseInt(base[at+1:], 10, 64)
		stream := Stream{Name: base[:at], Created: time.UnixMilli(created).UTC()}
		if err == nil && isName(stream.Name) && stream.String() == base {
			return stream, nil
		}
	}
	return Stream{}, fmt.Errorf("%q is not a stream's folder: want NAME@MILLISECONDS", base)
}

// names matches the names that Kinesis allows for streams and shards (API reference, "StreamName",
// "ShardId"). They become names of folders, so it excludes ".", "..", and every name that begins
// with a dot, which would be invisible.
var names = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9_.-]{0,127}$`)
})

func isName(text string) bool { return names().MatchString(text) }

// chain reads the links of one shard.
type chain struct {
	store  Store
	stream Stream
	shard  runnel.ShardID
}

func (c chain) folder() string { return folder(c.stream, c.shard) }

func (c chain) name(previous runnel.Position) string { return objectName(c.folder(), previous) }

// link reads the link that follows previous. ErrObjectNotFound: there is none yet.
func (c chain) link(ctx context.Context, previous runnel.Position) (*Link, error) {
	object, err := openObject(ctx, c.store, c.name(previous))
	if err != nil {
		return nil, err
	}
	link := object.link
	if err := object.close(); err != nil {
		return nil, err
	}
	if err := c.check(link, previous); err != nil {
		return nil, fmt.Errorf("link %s: %w", c.name(previous), err)
	}
	return link, nil
}

// check reports whether the link belongs at the place where it was found.
func (c chain) check(link *Link, previous runnel.Position) error {
	if link.Stream != c.stream || link.ShardID != c.shard || link.Previous != previous {
		return fmt.Errorf("%w: it says that it goes on after %s in %s of %s", ErrUnusableLink,
			link.Previous, link.ShardID, link.Stream)
	}
	return nil
}

// tip is the end of a chain: its last link, or its start if it has no link.
type tip struct {
	end  runnel.Position
	last *Link
}

// token names the tip's link, for the lease row.
func (c chain) token(at tip) string {
	if at.last == nil {
		return ""
	}
	return c.name(at.last.Previous)
}

// walk follows the links from a former tip to the current one, and makes durable the links that it
// has read.
func (c chain) walk(ctx context.Context, from tip) (tip, error) {
	for from.end != runnel.End() {
		next, err := c.link(ctx, from.end)
		if errors.Is(err, ErrObjectNotFound) {
			break
		}
		if err != nil {
			return tip{}, err
		}
		from = tip{end: next.End, last: next}
	}
	return from, c.store.Settle(ctx, c.folder())
}

// find returns the chain's tip. The checkpoint is the end of a worker's last known commit, and the
// token names that commit. The two are a short cut if they belong together; without them the names
// of the links lead to the tip.
func (c chain) find(ctx context.Context, checkpoint runnel.Position, token string) (tip, error) {
	if base, ok := strings.CutPrefix(token, c.folder()+"/"); ok {
		if previous, err := parseObject(base); err == nil {
			link, err := c.link(ctx, previous)
			switch {
			case err == nil && link.End == checkpoint:
				return c.walk(ctx, tip{end: link.End, last: link})
			case err != nil && !errors.Is(err, ErrObjectNotFound):
				return tip{}, err
			}
		}
	}
	from, err := c.listed(ctx)
	if err != nil {
		return tip{}, err
	}
	return c.walk(ctx, from)
}

// ends returns the end of this chain, that of a parent, in the form for the first link of a child.
// It also returns the reader's state there.
func (c chain) ends(ctx context.Context) (Parent, []byte, error) {
	from, err := c.listed(ctx)
	if err != nil {
		return Parent{}, nil, err
	}
	at, err := c.walk(ctx, from)
	switch {
	case err != nil:
		return Parent{}, nil, err
	case at.last == nil:
		return Parent{ShardID: c.shard, None: true}, nil, nil
	case at.end != runnel.End():
		return Parent{}, nil, fmt.Errorf("%w: %w; archive that shard to its end first",
			ErrParentOpen, &sink.ParentError{Parent: c.shard, End: at.end})
	}
	state, _, err := c.fold(ctx, at)
	return Parent{ShardID: c.shard, Link: at.last.Previous}, state, err
}

// listed returns the last link that the names show, or the chain's start. The writer of that link
// knew all the others, so the chain need not be read from its start. Names are hints: the walk goes
// on from there.
func (c chain) listed(ctx context.Context) (tip, error) {
	previous, some, err := c.furthest(ctx)
	if err != nil || !some {
		return tip{}, err
	}
	last, err := c.link(ctx, previous)
	if errors.Is(err, ErrObjectNotFound) || errors.Is(err, ErrUnusableLink) {
		return tip{}, nil // something that is no link: the walk decides
	}
	if err != nil {
		return tip{}, err
	}
	return tip{end: last.End, last: last}, nil
}

// ErrParentOpen is returned by Open if the chain of a shard's parent has no end. Without this error
// the child's records would be in the archive before the parent's last ones.
var ErrParentOpen = errors.New("a parent's chain is not at its end")
