package itemstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// MaxTables is the largest number of tables in a world: DynamoDB's default quota for an account
// and region.
const MaxTables = 2500

// Errors of the store. Those of the log (a context's, wal.ErrClosed, *wal.PoisonedError) are
// returned wrapped; after one of these the outcome of a write is unknown.
var (
	ErrTableNotFound = errors.New("table not found")
	ErrTableExists   = errors.New("table already exists")
	ErrTooManyTables = fmt.Errorf("more than %d tables in one account and region", MaxTables)
	ErrIndexNotFound = errors.New("index not found")
	ErrItemTooLarge  = fmt.Errorf("item of more than %d bytes", MaxItemSize)
	ErrItemTooDeep   = fmt.Errorf("item with values of more than %d levels", MaxDepth)
)

// Store holds the tables of a data directory. Safe for concurrent use once the log has started.
type Store struct {
	cfg    Config
	log    *wal.Log
	memory *memory
	chain  chain
	lost   []LostBlock

	verified map[dataFile]verdict // by Verify

	mu struct {
		sync.RWMutex
		byName  map[tableName]*Table
		byID    map[uint64]*Table
		nextID  uint64
		changed wal.LSN // the newest frame that created or dropped a table
	}
	tokens tokens
}

type tableName struct {
	world wire.World
	name  string
}

// Config configures a Store. The zero value of a field means its default.
type Config struct {
	// Log takes the store's frames, and its folder the data files. Required. It has not started.
	Log *wal.Log
	// MaxMemory bounds the memory that items and their entries in indexes take, in bytes. A write
	// that would grow beyond it gets ErrItemsMemory. Writes that grow nothing and deletions go on.
	// An item may grow by up to 256 bytes until the memory is a sixteenth above the bound. Items
	// that are there at the start stay. Default 0: no bound.
	MaxMemory int64
	// Salvage is for a repair: Restore goes on without the damaged parts of data files, see Lost,
	// and the next snapshot replaces all files. Default false: such damage is an error.
	Salvage bool
}

// New returns the store of a log, and registers the store with the log.
func New(cfg Config) *Store {
	s := newStore(cfg)
	cfg.Log.Register(wal.KindItems, s)
	return s
}

func newStore(cfg Config) *Store {
	s := &Store{cfg: cfg, log: cfg.Log, memory: &memory{most: cfg.MaxMemory}}
	s.mu.byName = map[tableName]*Table{}
	s.mu.byID = map[uint64]*Table{}
	s.mu.nextID = 1
	s.chain.limits, s.chain.logger = limitsFor(64<<20), slog.Default()
	if cfg.Log != nil {
		of := cfg.Log.Config()
		s.chain.files = files{of.FS, path.Join(of.Dir, FolderName)}
		s.chain.limits, s.chain.logger = limitsFor(of.FileSize), of.Logger
		if of.ReadOnly { // the inspection reports damage
			s.chain.logger = slog.New(slog.DiscardHandler)
		}
	}
	return s
}

// Table returns the table with a name, or ErrTableNotFound.
func (s *Store) Table(ctx context.Context, world wire.World, name string) (*Table, error) {
	s.mu.RLock()
	t := s.mu.byName[tableName{world, name}]
	lsn := s.mu.changed
	s.mu.RUnlock()
	// lsn may be that of a later creation: then the wait is slightly longer than needed.
	if err := s.log.Wait(ctx, lsn); err != nil {
		return nil, fmt.Errorf("look up table %s: %w", name, err)
	}
	if t == nil {
		return nil, ErrTableNotFound
	}
	return t, nil
}

// Names returns the names of a world's tables, ascending.
func (s *Store) Names(ctx context.Context, world wire.World) ([]string, error) {
	s.mu.RLock()
	var names []string
	for key := range s.mu.byName {
		if key.world == world {
			names = append(names, key.name)
		}
	}
	lsn := s.mu.changed
	s.mu.RUnlock()
	if err := s.log.Wait(ctx, lsn); err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Describe returns the table's description, or ErrTableNotFound once it was dropped.
func (s *Store) Describe(ctx context.Context, t *Table) (Stats, error) {
	stats, lsn, err := t.stats()
	return stats, s.shown(ctx, lsn, err)
}

// Index returns the description of one of the table's indexes. Errors: ErrIndexNotFound,
// ErrTableNotFound, or the log's.
func (s *Store) Index(ctx context.Context, t *Table, name string) (Index, error) {
	index, lsn, err := t.describeIndex(name)
	return index, s.shown(ctx, lsn, err)
}

func (t *Table) describeIndex(name string) (Index, wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.dropped {
		return Index{}, t.mu.altered, ErrTableNotFound
	}
	if x := t.index(name); x != nil {
		return x.Index, t.mu.altered, nil
	}
	return Index{}, t.mu.altered, ErrIndexNotFound
}

// CheckIndexKeys returns an *IndexKeyError if a put of the item is impossible in one of the
// table's indexes, whatever item is there now. Update returns the same error, but only after
// errors of its function. Other errors: the log's.
func (s *Store) CheckIndexKeys(ctx context.Context, t *Table, item Item) error {
	lsn, err := t.checkIndexKeys(item)
	if err == nil { // no state is shown
		return nil
	}
	return s.shown(ctx, lsn, err)
}

func (t *Table) checkIndexKeys(item Item) (wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, x := range t.mu.indexes {
		if err := x.check(nil, item); err != nil {
			return t.mu.altered, err
		}
	}
	return 0, nil
}

// shown waits until the state in an answer is durable, and then returns err.
func (s *Store) shown(ctx context.Context, lsn wal.LSN, err error) error {
	if waited := s.log.Wait(ctx, lsn); waited != nil {
		return fmt.Errorf("wait for the log: %w", waited)
	}
	return err
}

// decide runs fn inside the log's sequence, with room for size bytes, and waits until the state
// that fn made or saw is durable. The error is the log's, or else fn's.
func (s *Store) decide(
	ctx context.Context, size int, fn func(tx *wal.Tx) (wal.LSN, error),
) error {
	return s.decideBy(ctx, s.log.Sequence, size, fn)
}

// sequence is wal.Log's Sequence or SequenceFreeing. The latter works on a full disk too, for
// changes that free space.
type sequence func(ctx context.Context, size int, fn func(tx *wal.Tx)) error

func (s *Store) decideBy(
	ctx context.Context, by sequence, size int, fn func(tx *wal.Tx) (wal.LSN, error),
) error {
	var lsn wal.LSN
	var decided error
	err := by(ctx, size, func(tx *wal.Tx) { lsn, decided = fn(tx) })
	if err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	return s.shown(ctx, lsn, decided)
}

// frames is a pool of buffers for frames: Append copies them.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// logged appends the frame that build makes.
func logged(tx *wal.Tx, build func(frame []byte) []byte) wal.LSN {
	buffer := frames.Get().(*[]byte)
	*buffer = build(newFrame(*buffer))
	lsn := tx.Append(wal.KindItems, *buffer, nil)
	frames.Put(buffer)
	return lsn
}
