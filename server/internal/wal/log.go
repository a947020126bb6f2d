package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// LSN is a place in the log: the number of log bytes before it since the directory was made.
// It only grows, over restarts and recycled files alike.
type LSN uint64

// Kind tells which machine a frame belongs to. 0 is none.
type Kind uint8

// The kinds of frames; their numbers stand in the log.
const (
	KindCatalogue Kind = 1 // server/internal/kinesis: streams, shards, consumers
	KindRecords   Kind = 2 // shardlog: batches of records, trims
	KindItems     Kind = 3 // itemstore: tables and items

	kindMark Kind = 255 // the log's own: see mark
)

// Machine is a state machine whose every change stands in the log as a frame.
type Machine interface {
	// Restore replaces the state by a snapshot that Freeze once made; it is called at most
	// once, before Replay, and not at all if there is none; the machines take their turns in the
	// order of their kinds. The snapshot may be kept.
	Restore(snapshot []byte) error
	// Replay applies one frame, in the log's order, at start only; at is what Append returned
	// for it, the LSN of its end. The payload is valid during the call.
	Replay(at LSN, payload []byte) error
	// Freeze captures the state at this instant: nothing is sequenced meanwhile. It must be
	// quick. The function it returns is called later, once the log is durable up to that
	// instant, and gives the snapshot's bytes; it may do I/O (shardlog syncs its segments
	// there). It is not called if the checkpoint fails before. Frames after the instant are
	// replayed on top of the snapshot, and those that its bytes already hold must be
	// recognised.
	Freeze() func(ctx context.Context) ([]byte, error)
}

// Log is the write-ahead log. Open, Register every machine, Start; then Sequence. All methods
// but these three may be called at any time from any goroutine.
type Log struct {
	cfg      Config
	fs       vfs.FS
	logger   *slog.Logger
	machines map[Kind]Machine
	lock     io.Closer

	room   room
	gate   sync.RWMutex // Sequence reads while fn runs; a checkpoint writes while it freezes
	shut   atomic.Bool  // no fn may run any more: set before the gate is taken once
	txs    sync.Pool
	landed atomic.Uint64 // the LSN that Durable returns; written under mu

	turn       sync.Mutex     // who holds it commits
	kick       chan struct{}  // to the committer: something was appended
	dirty      chan struct{}  // to the interval syncer: something was written
	checkpoint chan struct{}  // to the checkpointer: enough was logged
	recycled   chan struct{}  // to the preparer: there may be room again
	prepared   chan *logFile  // from the preparer to the committer
	syncing    chan struct{}  // holds one token: who has it may sync and change the file
	snapping   chan struct{}  // the same for the checkpoint
	closing    chan struct{}  // closed when Close begins
	stop       chan struct{}  // closed when the goroutines must end
	closed     chan struct{}  // closed when Close is done
	cancel     func()         // ends what the checkpointer is doing
	group      sync.WaitGroup // the goroutines
	seal       sealer         // of who has the turn
	closeErr   error          // Close's result, once closed is closed
	format     int            // the directory's version

	mu struct {
		sync.Mutex
		state    state
		begun    bool // Start was called
		queue    queue
		poison   error     // a *PoisonedError, once one is needed
		file     *logFile  // what the committer writes
		written  LSN       // how far the file's content reaches
		synced   LSN       // how far everything is durable for certain
		segments []segment // the files that hold frames, oldest first
		spares   []uint64  // generations of files that hold nothing needed
		snapshot LSN       // of the newest checkpoint
		marked   LSN       // what stands before it is known to have been synced
		asked    LSN       // where a checkpoint was last asked for
		starving bool      // the committer waits for the next file
		short    error     // why the preparer could not make one
		cramped  error     // why the committer cannot write the one that it has
		first    uint64    // the first generation of this life
		lossy    bool      // the life before may have lost frames that it acknowledged
		fresh    uint64    // the next generation: the preparer's, after Start
	}
}

type state int

const (
	stateOpen state = iota
	stateRunning
	stateClosing
	stateClosed
)

// Open takes the directory, and makes it if it is not there. Errors: vfs.ErrLocked if it is
// in use, ErrFormat if a newer version wrote it, and what the file system says.
func Open(cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	cfg = cfg.withDefaults()
	l := &Log{
		cfg: cfg, fs: cfg.FS, logger: cfg.Logger.With("log", cfg.Dir),
		machines:   make(map[Kind]Machine),
		kick:       make(chan struct{}, 1),
		dirty:      make(chan struct{}, 1),
		checkpoint: make(chan struct{}, 1),
		recycled:   make(chan struct{}, 1),
		prepared:   make(chan *logFile),
		syncing:    make(chan struct{}, 1),
		snapping:   make(chan struct{}, 1),
		closing:    make(chan struct{}),
		stop:       make(chan struct{}),
		closed:     make(chan struct{}),
		cancel:     func() {},
	}
	l.txs.New = func() any { return new(Tx) }
	l.room.max = cfg.MaxPending
	l.room.refuse(errNotStarted)
	if err := l.takeDir(); err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", cfg.Dir, err)
	}
	return l, nil
}

func (l *Log) takeDir() error {
	if l.cfg.ReadOnly {
		return l.lookInDir()
	}
	if err := l.fs.MkdirAll(path.Join(l.cfg.Dir, walDir)); err != nil {
		return err
	}
	lock, err := l.fs.Lock(path.Join(l.cfg.Dir, "LOCK"))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("another runnel uses it, stop that or choose another folder: %w", err)
	}
	if err != nil {
		return err
	}
	if err := l.checkFormat(); err != nil {
		return errors.Join(err, lock.Close())
	}
	l.lock = lock
	return nil
}

// Register adds the machine of a kind. Before Start only.
func (l *Log) Register(kind Kind, m Machine) { l.machines[kind] = m }

// Durable returns the LSN up to which everything is durable, and has been told to the durable
// functions.
func (l *Log) Durable() LSN { return LSN(l.landed.Load()) }

// Err returns nil while the log takes frames, and otherwise why it does not: reads go on.
// It is ErrStalled, for as long as the disk is full, a *PoisonedError or ErrClosed.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.poison != nil:
		return l.mu.poison
	case l.mu.state >= stateClosing:
		return ErrClosed
	case l.mu.state == stateOpen:
		return errNotStarted
	default:
		return l.stalled()
	}
}

func (l *Log) poisoned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.poison != nil
}

// poison ends the log's life: nothing pending is acknowledged.
func (l *Log) poison(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.poison != nil {
		return
	}
	l.mu.poison = &PoisonedError{Dir: l.cfg.Dir, Cause: cause}
	l.shut.Store(true)
	l.room.refuse(l.mu.poison)
	l.mu.queue.fail()
}

// nudge wakes a goroutine that looks for work, unless it was woken already.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
