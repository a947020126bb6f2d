package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/archive"
)

// parallel is the number of objects, or of folders, that a verification reads at once.
const parallel = 16

// verification is the state of one Verify. It holds a number for each folder and no names, so its
// memory depends on the table's span of time alone.
type verification struct {
	table *Table
	limit int

	mu      sync.Mutex
	report  *archive.TableReport
	folders map[string]uint64 // the sum of the hashes of the names that should be there
}

// Verify compares the table with the archive: for each link that is derived, each of its objects
// has the link's records of its folder, and no other file is there. Links behind the progress are
// pending, unless their objects are there. It returns an error if the archive or the table cannot
// be read, also if a link is damaged, and describes up to limit findings of each kind.
func (t *Table) Verify(ctx context.Context, limit int) (*archive.TableReport, error) {
	v := &verification{
		table: t, limit: limit, folders: map[string]uint64{},
		report: &archive.TableReport{Name: t.name, Layout: string(t.layout)},
	}
	if err := v.run(ctx); err != nil {
		return nil, fmt.Errorf("verify table %s: %w", t.name, err)
	}
	return v.report, nil
}

func (v *verification) run(ctx context.Context) error {
	chains, err := v.table.chains(ctx)
	if err != nil {
		return err
	}
	for _, chain := range chains {
		if err := v.chain(ctx, chain); err != nil {
			return err
		}
	}
	return v.listing(ctx)
}

// sum is the number and checksum of the lines in one object.
type sum struct {
	count int64
	crc   uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *sum) add(line []byte) {
	s.count++
	s.crc = crc32.Update(s.crc, castagnoli, line)
}

// chain compares the objects of a shard's links.
func (v *verification) chain(ctx context.Context, chain archive.Chain) error {
	reached, err := v.table.reached(ctx, chain)
	if errors.Is(err, ErrDamaged) {
		v.report.Foreign.Add(1, v.limit, "%v", err)
		reached, err = runnel.Start(), nil
	}
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	at, err := v.links(ctx, chain, reached, group)
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.Less(reached) {
		v.report.Foreign.Add(1, v.limit, "%s: it is ahead of the archive, which ends at %s",
			v.table.progressPath(chain), at)
	}
	return nil
}

// links compares the objects of a shard's links, and returns the position that they reach. A broken
// link ends it.
func (v *verification) links(
	ctx context.Context, chain archive.Chain, reached runnel.Position, group *errgroup.Group,
) (at runnel.Position, err error) {
	for at = runnel.Start(); at != runnel.End(); {
		stored, err := v.table.reader.Stored(ctx, chain, at)
		if errors.Is(err, archive.ErrObjectNotFound) {
			came := false
			if came, err = v.table.goesOn(ctx, chain, at); came {
				continue
			}
			if err == nil {
				return at, nil
			}
		} else if err == nil {
			err = v.link(ctx, group, stored, stored.Link.End.Compare(reached) <= 0)
		}
		if isDamage(err) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.report.Broken.Add(1, v.limit, "%v", err)
			return runnel.End(), nil
		}
		if err != nil {
			return at, err
		}
		at = stored.Link.End
	}
	return at, nil
}

func isDamage(err error) bool {
	return errors.Is(err, archive.ErrUnusableLink) || errors.Is(err, archive.ErrContentsDiffer)
}

// link compares the objects of a link. derived: the progress covers it.
func (v *verification) link(
	ctx context.Context, group *errgroup.Group, stored *archive.Stored, derived bool,
) error {
	sums, err := v.table.sums(stored)
	if err != nil {
		return err
	}
	base := base(stored.Link)
	var pending sync.Once
	for folder, want := range sums {
		v.mu.Lock()
		v.folders[folder] += hashOf(base)
		v.mu.Unlock()
		group.Go(func() error {
			name := v.table.path(folder, base)
			got, err := v.table.sum(ctx, name)
			absent := errors.Is(err, archive.ErrObjectNotFound)
			if err != nil && !absent && !errors.Is(err, errNoObject) {
				return err
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			switch {
			case absent && derived:
				v.report.Missing.Add(1, v.limit, "%s", name)
			case absent:
				pending.Do(func() { v.report.Pending.Add(1, v.limit, "%s", name) })
			case err != nil:
				v.report.Differ.Add(1, v.limit, "%s: %v", name, err)
			case got != want:
				v.report.Differ.Add(1, v.limit, "%s: %d records, CRC-32C %08x; its link has %d, "+
					"%08x", name, got.count, got.crc, want.count, want.crc)
			default:
				v.report.Objects++
				v.report.Records += got.count
			}
			if absent {
				v.folders[folder] -= hashOf(base)
			}
			return nil
		})
	}
	return nil
}

// sums returns the sum of each folder of a link.
func (t *Table) sums(stored *archive.Stored) (map[string]sum, error) {
	sums := map[string]sum{}
	var line []byte
	for record, err := range stored.Records() {
		if err != nil {
			return nil, err
		}
		line = append(archive.AppendRecord(line[:0], &record), '\n')
		folder := t.layout.folder(record.ArrivalTime)
		s := sums[folder]
		s.add(line)
		sums[folder] = s
	}
	return sums, nil
}

// errNoObject is returned for a file that is no object of a table.
var errNoObject = errors.New("it cannot be read")

// sum reads an object of the table.
func (t *Table) sum(ctx context.Context, name string) (s sum, err error) {
	from, err := t.store.Get(ctx, name)
	if err != nil {
		return s, err
	}
	body := &faults{from: from}
	defer func() {
		if closeErr := from.Close(); err == nil {
			err = closeErr
		}
		if body.err != nil { // the store's, and not that of the contents
			err = body.err
		}
	}()
	packed, err := gzip.NewReader(body)
	if err != nil {
		return s, fmt.Errorf("%w: %w", errNoObject, err)
	}
	text, last := make([]byte, 64<<10), byte('\n')
	for {
		n, err := packed.Read(text)
		if n > 0 {
			s.count += int64(bytes.Count(text[:n], []byte{'\n'}))
			s.crc = crc32.Update(s.crc, castagnoli, text[:n])
			last = text[n-1]
		}
		switch {
		case errors.Is(err, io.EOF) && last == '\n':
			return s, nil
		case errors.Is(err, io.EOF):
			return s, fmt.Errorf("%w: its last line has no end", errNoObject)
		case err != nil:
			return s, fmt.Errorf("%w: %w", errNoObject, err)
		}
	}
}

// faults remembers an error of the store.
type faults struct {
	from io.Reader
	err  error
}

func (f *faults) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EISDIR) {
		f.err = err
	}
	return n, err
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// listing looks for files of no link. It lists all folders, and looks at the names of one only if
// they are not those of the links.
func (v *verification) listing(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	err := v.below(ctx, group, "", 0)
	return errors.Join(err, group.Wait())
}

func (v *verification) below(
	ctx context.Context, group *errgroup.Group, folder string, depth int,
) error {
	listing, err := v.table.store.List(ctx, v.table.path(folder))
	if err != nil {
		return err
	}
	leaf := depth == v.table.layout.depth()
	for _, base := range listing.Folders {
		below := path.Join(folder, base)
		switch {
		case depth == 0 && base == progressFolder:
			if err := v.progress(ctx); err != nil {
				return err
			}
		case leaf:
			v.foreign(below + "/")
		case depth+1 == v.table.layout.depth():
			group.Go(func() error { return v.below(ctx, group, below, depth+1) })
		default:
			if err := v.below(ctx, group, below, depth+1); err != nil {
				return err
			}
		}
	}
	if !leaf {
		for _, base := range listing.Objects {
			if depth > 0 || base != layoutFile {
				v.foreign(path.Join(folder, base))
			}
		}
		return nil
	}
	return v.leaf(ctx, folder, listing.Objects)
}

// progress looks for foreign names among those of the progress.
func (v *verification) progress(ctx context.Context) error {
	listing, err := v.table.store.List(ctx, v.table.path(progressFolder))
	if err != nil {
		return err
	}
	chains, err := v.table.chains(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, chain := range chains {
		known[path.Base(v.table.progressPath(chain))] = true
	}
	for _, base := range append(listing.Folders, listing.Objects...) {
		if !known[base] {
			v.foreign(path.Join(progressFolder, base))
		}
	}
	return nil
}

func (v *verification) foreign(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name = v.table.path(name)
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name) // it may command a terminal
	}
	v.report.Foreign.Add(1, v.limit, "%s", name)
}

// leaf compares the names in a folder of objects with the links'.
func (v *verification) leaf(ctx context.Context, folder string, bases []string) error {
	var there uint64
	for _, base := range bases {
		there += hashOf(base)
	}
	v.mu.Lock()
	same := there == v.folders[folder]
	v.mu.Unlock()
	if same {
		return nil
	}
	for _, base := range bases {
		belongs, err := v.belongs(ctx, folder, base)
		if err != nil {
			return err
		}
		if !belongs {
			v.foreign(path.Join(folder, base))
		}
	}
	return nil
}

// belongs reports whether a link has an object of this name in this folder.
func (v *verification) belongs(ctx context.Context, folder, name string) (bool, error) {
	created, shard, previous, ok := parseBase(name)
	if !ok {
		return false, nil
	}
	stream := archive.Stream{Name: v.table.stream, Created: time.UnixMilli(created).UTC()}
	chain := archive.Chain{Stream: stream, ShardID: shard}
	stored, err := v.table.reader.Stored(ctx, chain, previous)
	if errors.Is(err, archive.ErrObjectNotFound) {
		return false, nil
	}
	var folders []string
	if err == nil {
		folders, _, err = v.table.runs(stored)
	}
	if isDamage(err) {
		return true, nil // the chain is broken there, and that is reported
	}
	return slices.Contains(folders, folder) && base(stored.Link) == name, err
}
