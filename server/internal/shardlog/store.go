package shardlog

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// ID identifies a shard in a data directory. The catalogue never uses one twice.
type ID uint64

// Number is the store's number of a record. Package kinesis derives the API's sequence number from
// it.
type Number struct {
	Index   uint64 // in the shard, from 1 on without gaps
	Serial  uint64 // the index plus the numbers that were skipped (Begin); never given twice
	Arrival int64  // ms since 1970; it never steps back within a shard
}

// Entry is a record to append.
type Entry struct {
	PartitionKey string
	Data         []byte
}

// Record is a stored record. Callers may keep Data and PartitionKey but must not change them: the
// records of one Read share their memory.
type Record struct {
	Number
	PartitionKey string
	Data         []byte
}

// Config configures a Store. The zero value of a field means its default.
type Config struct {
	Log *wal.Log // required; New registers the store with it for wal.KindRecords
	FS  vfs.FS   // required
	Dir string   // required: the data directory, in which the store has the folder "shards"

	// SegmentSize is the size at which a segment file is full, in bytes. A file may exceed it by
	// less than one batch. Retention frees whole segments. Default 32 MiB; 4 KiB to 1 GiB.
	SegmentSize int64
	// OpenFiles is the number of segment files to keep open, and the number that may await a
	// checkpoint's sync. With fewer than there are busy shards, syncs come more often. Default 512;
	// at least 4.
	OpenFiles int
	// IndexEntries is the number of entries of sparse indexes to keep in memory: 24 bytes for
	// every 64 KiB of recently written or searched data. Default 1,048,576, which is an index of
	// 64 GiB; at least 1,024.
	IndexEntries int
	// MaxReplay is the number of replayed bytes that may wait in memory at a start before replay
	// waits for the drainer. Default 32 MiB; at least 64 KiB.
	MaxReplay int
	// DrainDelay is the time for which batches may gather in memory before they are written to
	// segments; RetryDelay is the pause after a failed write. Default 250 ms and 1 s.
	DrainDelay time.Duration
	RetryDelay time.Duration

	// SkipDamaged lets reads go on behind damaged records instead of failing. Each damaged record
	// counts once in Store.Damaged, and the log has a warning for each place. Default false.
	SkipDamaged bool

	Now    func() time.Time // the server's clock, which stamps arrivals; required
	Logger *slog.Logger     // gets files that cannot be removed; default slog.Default()
}

// The defaults of Config.
const (
	defaultSegmentSize  = 32 << 20
	defaultOpenFiles    = 512
	defaultIndexEntries = 1 << 20
	defaultMaxReplay    = 32 << 20
	defaultDrainDelay   = 250 * time.Millisecond
	defaultRetryDelay   = time.Second
)

func (c Config) withDefaults() Config {
	if c.SegmentSize == 0 {
		c.SegmentSize = defaultSegmentSize
	}
	if c.OpenFiles == 0 {
		c.OpenFiles = defaultOpenFiles
	}
	if c.IndexEntries == 0 {
		c.IndexEntries = defaultIndexEntries
	}
	if c.MaxReplay == 0 {
		c.MaxReplay = defaultMaxReplay
	}
	if c.DrainDelay == 0 {
		c.DrainDelay = defaultDrainDelay
	}
	if c.RetryDelay == 0 {
		c.RetryDelay = defaultRetryDelay
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("shardlog: "+format, args...))
		}
	}
	fault(c.Log == nil, "Config.Log is missing: open the log first")
	fault(c.FS == nil, "Config.FS is missing")
	fault(c.Now == nil, "Config.Now is missing: want the server's clock")
	fault(c.Dir == "", "Config.Dir is missing: name the data directory")
	fault(c.SegmentSize < 4<<10 || c.SegmentSize > 1<<30,
		"Config.SegmentSize is %d: use 4 KiB to 1 GiB", c.SegmentSize)
	fault(c.OpenFiles < 4, "Config.OpenFiles is %d: use at least 4", c.OpenFiles)
	fault(c.IndexEntries < 1024, "Config.IndexEntries is %d: use at least 1024", c.IndexEntries)
	fault(c.MaxReplay < 64<<10, "Config.MaxReplay is %d: use at least 64 KiB", c.MaxReplay)
	fault(c.DrainDelay < 0, "Config.DrainDelay is %v: use 0 or more", c.DrainDelay)
	fault(c.RetryDelay < 0, "Config.RetryDelay is %v: use 0 or more", c.RetryDelay)
	return errors.Join(faults...)
}

// Store holds the records of all shards: a state machine over the log. Safe for concurrent use.
type Store struct {
	cfg     Config
	log     *wal.Log
	root    string // the folder of the shards' folders
	files   *files
	dirty   *dirtySet
	sparse  *sparseCache
	damage  damage // that reads have skipped
	drain   *drainer
	bytes   atomic.Int64
	fatal   atomic.Pointer[error] // a failed sync; never cleared
	syncing chan struct{}         // holds one value while segments are synced

	mu struct {
		sync.RWMutex
		shards  map[ID]*Shard
		skipped uint64 // by the latest skip: the serials of new shards begin there
	}
}

// New makes the store and its folder, and registers the store with the log. Call it between
// wal.Open and Log.Start. It starts the drainer: call Close even if Start then fails.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := newStore(cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	cfg.Log.Register(wal.KindRecords, s)
	return s, nil
}

// idleStore makes a store without touching the disk or starting a goroutine.
func idleStore(cfg Config) *Store {
	s := &Store{cfg: cfg, log: cfg.Log, root: path.Join(cfg.Dir, "shards")}
	s.files = newFiles(cfg.FS, cfg.OpenFiles)
	s.dirty = newDirtySet()
	s.syncing = make(chan struct{}, 1)
	s.sparse = newSparseCache(cfg.IndexEntries)
	s.mu.shards = map[ID]*Shard{}
	s.drain = newDrainer(s)
	return s
}

func newStore(cfg Config) (*Store, error) {
	s := idleStore(cfg)
	// The folder may exist although its name was never synced, if an earlier process ended too
	// soon. The log syncs the names in the directory when it opens an existing one, and at the
	// end of a first start.
	if err := cfg.FS.MkdirAll(s.root); err != nil {
		return nil, fmt.Errorf("make the folder of the shards: %w", err)
	}
	s.drain.start()
	return s, nil
}

// The catalogue decides and logs Create, Seal and Delete. It calls them inside wal.Log.Sequence,
// together with its own frame for the change, and again, in the same order, when it replays that
// frame. They are idempotent.
//
// Seal and Delete take effect for appends at once. For readers they take effect when the
// catalogue calls the returned function: once its frame is durable, in the durable callback of
// [wal.Tx.Append] or later, and at once during a replay. Without that call a sealed shard never
// reports itself sealed, and a deleted shard's files stay until the next start. The functions do
// not block and may be called again.

// Create makes an empty shard and returns it, or returns the existing one.
func (s *Store) Create(id ID) *Shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.mu.shards[id]; sh != nil {
		return sh
	}
	sh := newShard(s, id)
	if s.mu.skipped > 0 {
		sh.setSkips(skips{{1, s.mu.skipped}})
	}
	s.mu.shards[id] = sh
	return sh
}

// Seal closes the shard for appends at once. The returned function makes that visible to readers
// ([Shard.Sealed], Wait). The catalogue calls it when the seal is durable. An unknown shard is
// ignored.
func (s *Store) Seal(id ID) (published func()) {
	sh := s.Shard(id)
	if sh == nil {
		return func() {}
	}
	sh.seq.Lock()
	sh.seq.sealed = true
	sh.seq.Unlock()
	return sh.publishSeal
}

// Delete makes the shard refuse appends at once. The returned function removes the shard for
// readers: reads fail with ErrDeleted, waiters return, and the files are removed in the background.
// The catalogue calls it when the deletion is durable. An unknown shard is ignored.
func (s *Store) Delete(id ID) (published func()) {
	sh := s.Shard(id)
	if sh == nil {
		return func() {}
	}
	sh.seq.Lock()
	sh.seq.deleted = true
	sh.seq.Unlock()
	return func() { s.publishDelete(sh) }
}

// publishDelete runs in the log's committer or in a replay: it must not block.
func (s *Store) publishDelete(sh *Shard) {
	s.mu.Lock()
	delete(s.mu.shards, sh.id)
	s.mu.Unlock()
	if sh.publishDelete() {
		s.drain.attend(sh, 0)
	}
}

// Shard returns the shard, or nil if it does not exist or is durably deleted.
func (s *Store) Shard(id ID) *Shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.shards[id]
}

// all returns every shard, by id.
func (s *Store) all() []*Shard {
	s.mu.RLock()
	shards := slices.Collect(maps.Values(s.mu.shards))
	s.mu.RUnlock()
	slices.SortFunc(shards, func(a, b *Shard) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return shards
}

// Count returns the number of shards, visible or not yet.
func (s *Store) Count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.mu.shards)
}

// Bytes returns the size of the segments on the disk.
func (s *Store) Bytes() int64 { return s.bytes.Load() }

// Err returns nil while the store takes records, and otherwise the reason. The error wraps
// ErrStalled while segments cannot be written, which may pass, or ErrSync for ever. Reads
// continue in both cases.
func (s *Store) Err() error {
	if fatal := s.fatal.Load(); fatal != nil {
		return *fatal
	}
	return s.drain.stalled()
}

// fail makes the store refuse records until the next start.
func (s *Store) fail(err error) {
	s.fatal.CompareAndSwap(nil, &err)
	s.log.Obstruct(s.Err())
}

// Close ends the drainer and every Wait, and closes the files. Call it after wal.Log.Close, whose
// checkpoint needs the drainer; the log keeps the records that this checkpoint did not cover.
// Close returns Err. A second call does nothing.
func (s *Store) Close() error {
	err := s.Err()
	if !s.drain.close() {
		return err
	}
	for _, sh := range s.all() {
		sh.publishClose()
	}
	s.dirty.close(s.files)
	s.files.close()
	return err
}
