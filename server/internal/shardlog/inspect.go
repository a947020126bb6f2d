package shardlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Inspector replaces a Store for [wal.Log.Inspect]: it takes the same snapshot and frames, and
// changes nothing. Files then reads every segment. Use it from one goroutine.
type Inspector struct {
	store  *Store // knows the shards; it is not started
	shards map[ID]*Inspected
	found  Found
}

// Inspected is the state of a shard that an inspection has found.
type Inspected struct {
	ID       ID
	Oldest   uint64 // the visible records are [Oldest, Next)
	Next     uint64
	Arrival  int64 // of the newest record, ms since 1970
	Sealed   bool
	Segments int    // files that the snapshot names
	Bytes    int64  // of the segments
	InLog    int    // records that the next start writes from the log to segments
	Skips    int    // the number of the serials' skips
	Lost     uint64 // records in [Oldest, Next) that an earlier repair has found lost
	damaged  bool
	image    shardImage
}

// Found lists the files under the shards' folder.
type Found struct {
	Bytes    int64    // of all files under the shards' folder
	Leftover []string // useless files and folders: the next start removes them
	Foreign  []string // files of other origin, which a start leaves alone
	Damage   []Damage
}

// Damage is records that cannot be read.
type Damage struct {
	Shard    ID
	File     string // "" if it is not about a file
	Offset   int64
	From, To uint64 // the records [From, To) are lost; none if they are equal
	Reason   string
}

var _ wal.Machine = (*Inspector)(nil)

// NewInspector returns the inspector of a data directory, registered with a log that was opened
// for inspection.
func NewInspector(log *wal.Log, fsys vfs.FS, dir string) *Inspector {
	cfg := Config{Log: log, FS: vfs.ReadOnly(fsys), Dir: dir}.withDefaults()
	in := &Inspector{store: idleStore(cfg), shards: map[ID]*Inspected{}}
	log.Register(wal.KindRecords, in)
	return in
}

// Store returns the store in which the catalogue creates its shards. It holds no records.
func (in *Inspector) Store() *Store { return in.store }

// Restore implements wal.Machine.
func (in *Inspector) Restore(snapshot []byte) error {
	images, _, err := decodeSnapshot(snapshot)
	for _, image := range images {
		in.store.Create(image.id).seq.sealed = image.sealed
		sh := &Inspected{
			ID: image.id, Oldest: image.oldest, Next: image.next, Arrival: image.arrival,
			Segments: len(image.segments), Skips: len(image.skips), Lost: image.lost(),
			image: image,
		}
		for _, seg := range image.segments {
			sh.Bytes += seg.size
		}
		in.shards[image.id] = sh
	}
	return err
}

// Replay implements wal.Machine. It counts missing records as lost and continues.
func (in *Inspector) Replay(at wal.LSN, payload []byte) error {
	if len(payload) > 0 && payload[0] == opTrim {
		id, oldest, err := decodeTrim(payload)
		if err == nil {
			sh := in.at(id)
			sh.Oldest = max(sh.Oldest, min(oldest, sh.Next))
			sh.Lost = sh.lostFrom(sh.Oldest)
		}
		return err
	}
	if len(payload) > 0 && payload[0] == opSkip {
		return in.replaySkip(payload)
	}
	id, b, err := decodeBatch(payload)
	if err != nil {
		return err
	}
	sh := in.at(id)
	if b.first > sh.Next {
		in.damage(sh, Damage{
			From: sh.Next, To: b.first,
			Reason: fmt.Sprintf("before position %d, the log goes on with record %d", at, b.first),
		})
	}
	if b.end() > sh.Next {
		sh.InLog += int(b.end() - max(sh.Next, b.first))
		sh.Next, sh.Arrival = b.end(), b.arrival
	}
	return nil
}

func (in *Inspector) replaySkip(payload []byte) error {
	f, err := decodeSkip(payload)
	if err != nil {
		return err
	}
	for i, id := range f.shards {
		sh := in.at(id)
		if f.first[i] > sh.Next {
			return fmt.Errorf("%w: shard %d skips from record %d on, after its %d", ErrFormat, id,
				f.first[i], sh.Next)
		}
		sh.Skips++
	}
	return nil
}

// lostFrom returns the number of records from an index on that the snapshot lacks.
func (sh *Inspected) lostFrom(oldest uint64) uint64 {
	image := sh.image
	if image.oldest = max(image.oldest, min(oldest, image.next)); image.id == 0 {
		return 0
	}
	return image.lost()
}

// Freeze implements wal.Machine. The log never calls it on an inspector.
func (in *Inspector) Freeze() func(ctx context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }
}

// at returns the state of a shard, which the catalogue should know too.
func (in *Inspector) at(id ID) *Inspected {
	sh := in.shards[id]
	if sh == nil {
		sh = &Inspected{ID: id, Oldest: 1, Next: 1}
		in.shards[id] = sh
	}
	return sh
}

func (in *Inspector) damage(sh *Inspected, d Damage) {
	d.Shard = sh.ID
	sh.damaged = true
	in.found.Damage = append(in.found.Damage, d)
}

// Shards returns the shards that a start would find, ordered by id.
func (in *Inspector) Shards() []*Inspected {
	var shards []*Inspected
	for _, known := range in.store.all() {
		sh := in.at(known.id)
		sh.Sealed = known.seq.sealed
		shards = append(shards, sh)
	}
	return shards
}
