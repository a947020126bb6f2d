package table

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/sink/archive"
)

// Store is the store of an archive, which can also replace an object.
type Store interface {
	archive.Store
	// Put creates an object, or replaces it as a whole: readers find the old one or the new one.
	// After nil the new one is durable.
	Put(ctx context.Context, name string, data []byte) error
}

// Table is a table of an archive. It is safe for concurrent use.
type Table struct {
	store  Store
	reader *archive.Reader
	name   string
	layout Layout
	stream string

	mu    sync.Mutex
	swept map[string]bool // folders
}

// Config is the configuration of a table. Store and Name are needed.
type Config struct {
	// Store is the archive's.
	Store Store
	// Name is the table's: letters, digits, "_", "-" and ".", 128 at most, the first one a letter
	// or a digit.
	Name string
	// Layout is fixed by the first use. Default: that of the table, which must be there.
	Layout Layout
	// Stream is the archive's stream, by its name or ARN; the name is fixed by the first use.
	// Default: that of the table, which must be there.
	Stream string
}

var (
	// ErrName is returned for a text that cannot be a table's name.
	ErrName = errors.New("a table's name has letters, digits, _, - and ., 128 at most, and " +
		"begins with a letter or a digit")
	// ErrNotFound is returned if there is no table of the name.
	ErrNotFound = errors.New("the archive has no such table")
	// ErrOther is returned if the table has another layout or stream.
	ErrOther = errors.New("it has another layout or stream")
	// ErrDamaged is returned for a file of a table that cannot be read.
	ErrDamaged = errors.New("not as a table has it")
)

var names = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
})

const (
	layoutFile     = "_layout.json"
	progressFolder = "_progress"
	format         = "runnel.table"
	version        = 1
)

// fixed is the content of the layout file.
type fixed struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Stream  string `json:"stream"`
	Layout  Layout `json:"layout"`
}

// Open returns a table of the archive in a store. If Layout and Stream are set, it makes the table
// unless it is there. The errors above say why not.
func Open(ctx context.Context, cfg Config) (*Table, error) {
	if cfg.Store == nil {
		return nil, errors.New("table: Store is missing: want that of the archive")
	}
	if !names().MatchString(cfg.Name) {
		return nil, fmt.Errorf("table %q: %w", cfg.Name, ErrName)
	}
	if err := streamref.Check(cfg.Stream); err != nil {
		return nil, fmt.Errorf("table %s: Stream is %q, %w", cfg.Name, cfg.Stream, err)
	}
	t := &Table{
		store: cfg.Store, reader: archive.NewReader(cfg.Store), name: cfg.Name,
		layout: cfg.Layout, stream: streamref.Name(cfg.Stream), swept: map[string]bool{},
	}
	if err := t.fix(ctx); err != nil {
		return nil, fmt.Errorf("table %s: %w", cfg.Name, err)
	}
	return t, nil
}

// fix creates the layout file, or compares with it.
func (t *Table) fix(ctx context.Context) error {
	name := t.path(layoutFile)
	if t.layout != "" && t.stream != "" {
		if _, err := ParseLayout(string(t.layout)); err != nil {
			return err
		}
		text, err := json.Marshal(fixed{format, version, t.stream, t.layout})
		if err != nil {
			return err
		}
		err = t.store.PutIfAbsent(ctx, name, append(text, '\n'))
		if err == nil || !errors.Is(err, archive.ErrObjectExists) {
			return err
		}
	}
	text, err := t.read(ctx, name)
	if errors.Is(err, archive.ErrObjectNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	var is fixed
	err = json.Unmarshal(text, &is)
	if err == nil {
		_, err = ParseLayout(string(is.Layout))
	}
	switch {
	case is.Format == format && is.Version > version:
		return fmt.Errorf("%s: %w: its version is %d, and this runnel knows %d: use a newer runnel",
			name, ErrDamaged, is.Version, version)
	case err != nil || is.Format != format || is.Stream == "":
		return fmt.Errorf("%s: %w: %.100q", name, ErrDamaged, bytes.TrimSpace(text))
	case t.layout != "" && t.layout != is.Layout, t.stream != "" && t.stream != is.Stream:
		return fmt.Errorf("%w: its first use has fixed layout %s of stream %s; layout %s of "+
			"stream %s needs a table of another name", ErrOther, is.Layout, is.Stream,
			cmp.Or(t.layout, is.Layout), cmp.Or(t.stream, is.Stream))
	}
	t.layout, t.stream = is.Layout, is.Stream
	return nil
}

// Layout returns the table's layout.
func (t *Table) Layout() Layout { return t.layout }

// Stream returns the name of the table's stream.
func (t *Table) Stream() string { return t.stream }

func (t *Table) path(below ...string) string {
	return path.Join(append([]string{archive.TablesFolder, t.name}, below...)...)
}

// mostRead bounds the files that are read as a whole: layouts and progress.
const mostRead = 64 << 10

func (t *Table) read(ctx context.Context, name string) ([]byte, error) {
	from, err := t.store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(from, mostRead))
	if closeErr := from.Close(); err == nil {
		err = closeErr
	}
	return text, err
}

// chains returns the shards of the table's stream, of all its creation times, by the names of their
// folders: a damaged link of one shard does not concern the others.
func (t *Table) chains(ctx context.Context) ([]archive.Chain, error) {
	streams, err := t.reader.Streams(ctx)
	if err != nil {
		return nil, err
	}
	var chains []archive.Chain
	for _, stream := range streams {
		if stream.Name != t.stream {
			continue
		}
		listing, err := t.store.List(ctx, stream.String())
		if err != nil {
			return nil, err
		}
		for _, id := range listing.Folders {
			chains = append(chains, archive.Chain{Stream: stream, ShardID: runnel.ShardID(id)})
		}
	}
	return chains, nil
}

// goesOn is called when a shard had no link at a position. came is true if there is one now. An
// error that wraps archive.ErrUnusableLink says that there is none, and that others follow.
func (t *Table) goesOn(
	ctx context.Context, shard archive.Chain, at runnel.Position,
) (came bool, err error) {
	folder := path.Join(shard.Stream.String(), string(shard.ShardID))
	names, _, err := t.store.After(ctx, folder, at.SortText()+extension)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, extension) {
			continue
		}
		_, err := t.reader.Stored(ctx, shard, at)
		if errors.Is(err, archive.ErrObjectNotFound) {
			err = fmt.Errorf("%w: %s/%s%s is missing, and %s is there", archive.ErrUnusableLink,
				folder, at.SortText(), extension, name)
		}
		return err == nil, err
	}
	return false, nil
}

// sweep removes the remains of a crash from a folder, once: a put that is under way there begins
// anew.
func (t *Table) sweep(ctx context.Context, folder string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.swept[folder] {
		return nil
	}
	if err := t.store.Sweep(ctx, t.path(folder)); err != nil {
		return err
	}
	t.swept[folder] = true
	return nil
}

// progress is the content of a shard's progress file.
type progress struct {
	End string `json:"end"` // a position's key: the links up to there are in the table
}

func (t *Table) progressPath(shard archive.Chain) string {
	return t.path(progressFolder, fmt.Sprintf("%d-%s.json", shard.Stream.Created.UnixMilli(),
		shard.ShardID))
}

// reached returns the position up to which a shard's links are in the table.
func (t *Table) reached(ctx context.Context, shard archive.Chain) (runnel.Position, error) {
	name := t.progressPath(shard)
	text, err := t.read(ctx, name)
	if errors.Is(err, archive.ErrObjectNotFound) {
		return runnel.Start(), nil
	}
	if err != nil {
		return runnel.Position{}, err
	}
	var at progress
	if err := json.Unmarshal(text, &at); err != nil {
		return runnel.Position{}, fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	end, err := runnel.ParsePosition(at.End)
	if err != nil {
		return end, fmt.Errorf("%s: %w: %w", name, ErrDamaged, err)
	}
	return end, nil
}

// advance writes a shard's progress.
func (t *Table) advance(ctx context.Context, shard archive.Chain, end runnel.Position) error {
	text, err := json.Marshal(progress{end.SortText()})
	if err != nil {
		return err
	}
	return t.store.Put(ctx, t.progressPath(shard), append(text, '\n'))
}
