package wal

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// LSN is a place in the log: the number of log bytes before it since the directory was made.
// It only grows, over restarts and recycled files alike.
type LSN uint64

// Kind identifies the machine of a frame. 0 is none.
type Kind uint8

// The kinds of frames. The log holds these numbers: never change one.
const (
	KindCatalogue Kind = 1 // server/internal/kinesis: streams, shards, consumers
	KindRecords   Kind = 2 // shardlog: batches of records, trims
	KindItems     Kind = 3 // itemstore: tables and items

	kindMark Kind = 255 // the log's own: see mark
)

// Machine is a state machine that logs every change of its state as a frame.
type Machine interface {
	// Restore replaces the state by a snapshot that Freeze made. The log calls it at most once,
	// before Replay, and not without a snapshot. The machines are restored in the order of their
	// kinds. A machine may keep the slice.
	Restore(snapshot []byte) error
	// Replay applies one frame, in the log's order, at start only. at is the LSN of the frame's
	// end, the value that Append returned for it. The payload is valid during the call.
	Replay(at LSN, payload []byte) error
	// Freeze captures the state at this instant; no frame is sequenced meanwhile, so it must be
	// quick. The log calls the returned function later, once it is durable up to that instant, to
	// get the snapshot's bytes; that function may do I/O (shardlog syncs its segments there). The
	// log does not call it if the checkpoint fails earlier. A start replays the frames after the
	// instant on top of the snapshot; if the bytes already contain some of them, the machine must
	// recognise those.
	Freeze() func(ctx context.Context) ([]byte, error)
}

// FileKeeper is a machine that keeps a part of its snapshots in files of its own, which the
// snapshots name. The function that Freeze returned makes such files durable before it returns. It
// may be called again after an error.
//
// Restore of a FileKeeper comes before that of the other machines. If it returns a *CorruptError it
// has changed nothing, and the log tries an older snapshot.
type FileKeeper interface {
	Machine
	// Verify reads all files that a snapshot names, for an inspection, and changes nothing. spare
	// is damage that a Restore does without, and lost damage that it does not.
	Verify(snapshot []byte) (spare, lost []*CorruptError, err error)
	// Began is called at the end of a start. It removes the files of checkpoints that did not end.
	Began() error
	// Keep is called when the snapshot of the last Freeze is durable. It removes the files that
	// neither it nor, with older, the snapshot before it names.
	Keep(older bool) error
}

// Log is the write-ahead log. Call Open, Register for every machine, Start, then Sequence. All
// other methods may be called at any time from any goroutine.
type Log struct {
	cfg      Config
	folder   folder
	logger   *slog.Logger
	machines map[Kind]Machine

	room   room
	gate   sync.RWMutex // shared by running fn; exclusive while a checkpoint freezes
	shut   atomic.Bool  // no further fn may run; set before the gate is taken exclusively once
	txs    sync.Pool
	landed atomic.Uint64 // the LSN that Durable returns; written under mu
	ready  atomic.Bool   // mu.next is there; written under mu

	turn       sync.Mutex     // its holder commits
	kick       chan struct{}  // to the committer: a frame was appended
	dirty      chan struct{}  // to the interval syncer: a frame was written
	checkpoint chan struct{}  // to the checkpointer: enough was logged
	watched    chan struct{}  // to the watcher: a frame was written
	freed      chan struct{}  // to the checkpointer: a change has freed space
	recycled   chan struct{}  // to the preparer: there may be room again
	prepared   chan *logFile  // from the preparer to the committer
	syncing    chan struct{}  // holds one token: its holder may sync and change the file
	snapping   chan struct{}  // the same for the checkpoint
	closing    chan struct{}  // closed when Close begins
	stop       chan struct{}  // closed when the goroutines must end
	closed     chan struct{}  // closed when Close is done
	cancel     func()         // cancels the checkpointer's context
	group      sync.WaitGroup // the goroutines
	seal       sealer         // belongs to the holder of turn
	typical    time.Duration  // of the last checkpoint; belongs to the holder of snapping
	closeErr   error          // Close's result, once closed is closed
	inspected  *inspector     // by Inspect

	mu struct {
		sync.Mutex
		state    state
		begun    bool // Start was called
		queue    queue
		poison   error         // a *PoisonedError once the log has failed
		file     *logFile      // the committer writes it
		next     *logFile      // the preparer has made it for the committer
		coming   *logFile      // the committer has taken it, and writes file to its end
		written  LSN           // the end of the file's frames
		synced   LSN           // the log is durable up to here for certain
		segments []segment     // the files that hold frames, oldest first
		spares   []uint64      // generations of files without needed frames
		snapshot LSN           // of the newest checkpoint
		marked   LSN           // a later frame or block records the sync up to here
		asked    LSN           // the LSN of the last request for a checkpoint
		starving bool          // the committer waits for the next file
		short    bool          // a frame would have reached into the reserve
		claims   int64         // claimed bytes of frames that are not in the queue yet
		verdict  chan struct{} // closed once the next file is ready, or cannot be made; or nil
		fileErr  error         // why the preparer could not make a file
		obstacle error         // Obstruct's cause
		writeErr error         // why the committer cannot write to its file
		first    uint64        // the first generation of this life
		lossy    bool          // the life before may have lost acknowledged frames
		fresh    uint64        // the next generation; owned by the preparer after Start
	}
}

type state int

const (
	stateOpen state = iota
	stateRunning
	stateClosing
	stateClosed
)

// Open locks the directory, and makes it if it does not exist. Errors: vfs.ErrLocked if it is in
// use, ErrFormat if a newer version wrote it, and the file system's.
func Open(cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	cfg = cfg.withDefaults()
	l := &Log{
		cfg: cfg, logger: cfg.Logger.With("log", cfg.Dir),
		folder: folder{
			fs: cfg.FS, dir: cfg.Dir, readOnly: cfg.ReadOnly, salvage: cfg.Salvage,
		},
		machines:   make(map[Kind]Machine),
		kick:       make(chan struct{}, 1),
		dirty:      make(chan struct{}, 1),
		checkpoint: make(chan struct{}, 1),
		watched:    make(chan struct{}, 1),
		freed:      make(chan struct{}, 1),
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
	if err := l.folder.take(); err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", cfg.Dir, err)
	}
	return l, nil
}

// Config returns the log's configuration, with its defaults.
func (l *Log) Config() Config { return l.cfg }

// fileKeepers returns the machines that keep files of their own.
func fileKeepers(machines map[Kind]Machine) (keepers []FileKeeper) {
	for _, kind := range slices.Sorted(maps.Keys(machines)) {
		if keeper, ok := machines[kind].(FileKeeper); ok {
			keepers = append(keepers, keeper)
		}
	}
	return keepers
}

// recovery returns the reading of the folder into the machines.
func (l *Log) recovery() *recovery {
	return &recovery{folder: &l.folder, machines: l.machines}
}

// Register adds the machine of a kind. Call it before Start.
func (l *Log) Register(kind Kind, m Machine) { l.machines[kind] = m }

// Durable returns the LSN up to which the log is durable and all durable functions have run.
func (l *Log) Durable() LSN { return LSN(l.landed.Load()) }

// Err returns nil while the log takes frames, and otherwise the reason: ErrStalled while the disk
// is full, a *PoisonedError, or ErrClosed. Reads continue in all cases. A log that is obstructed is
// itself sound: its Err is nil.
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

// poison ends the log's life: no pending frame is acknowledged.
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
	claims{l}.decide()
}

// nudge wakes a goroutine unless a wake-up is already queued for it.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
