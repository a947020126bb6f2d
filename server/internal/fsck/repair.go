package fsck

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// errStillDamaged means that a repaired directory does not check as sound.
var errStillDamaged = errors.New("the repaired directory is still damaged: keep it, and restore " +
	"another from a copy")

// Repair finds everything whole in a damaged data directory. With write it makes the directory
// sound again, and lists the losses in a file there; else it reports the same and changes nothing.
// It changes nothing in a sound directory.
//
// New segments and the list of losses come first; nothing refers to them yet. Then one rename
// replaces the snapshot, so a crash leaves the directory as it was or repaired. Errors: those of
// Check, and those of writing; after one of these the directory is as it was. Without numbers the
// report has no sequence numbers.
func Repair(
	ctx context.Context, fsys vfs.FS, dir string, write bool, numbers Numbers,
) (*RepairReport, error) {
	checked, err := Check(ctx, fsys, dir)
	if err != nil {
		return nil, err
	}
	report := &RepairReport{Dir: dir, OK: checked.OK, Whole: checked.OK, Damage: checked.Damage}
	if checked.OK {
		return report, nil
	}
	cfg := wal.Config{FS: fsys, Dir: dir, Salvage: true}
	if !write {
		cfg.FS = vfs.ReadOnly(fsys)
	}
	r, err := planned(ctx, cfg, report, numbers)
	if err != nil {
		return report, err
	}
	if write && r.report.Refused == "" {
		err = r.write(ctx)
	}
	report = r.report
	if err = errors.Join(err, r.log.Close(ctx)); err != nil || !report.Written {
		return report, err
	}
	if checked, err = Check(ctx, fsys, dir); err == nil && !checked.OK {
		err = fmt.Errorf("%w: %s: %s", errStillDamaged, checked.Damage[0].File,
			checked.Damage[0].What)
	}
	report.OK = err == nil
	return report, err
}

// planned plans the repair that loses the least. The newest snapshot only refers to records. The
// log from an older state on has those of a damaged segment: it reaches back to the older snapshot,
// and in a young directory to its own beginning. But that part of the log may be damaged itself.
func planned(
	ctx context.Context, cfg wal.Config, base *RepairReport, numbers Numbers,
) (*repairer, error) {
	var best *repairer
	for cfg.Base = wal.BaseNewest; cfg.Base <= wal.BaseEmpty; cfg.Base++ {
		r, err := planOne(ctx, cfg, base, numbers)
		if err != nil {
			return nil, err
		}
		r.base = cfg.Base
		if best == nil || r.report.loss().below(best.report.loss()) && r.report.Refused == "" {
			best = r
		}
		if best.report.loss() == (loss{}) {
			return best, nil
		}
		if err := r.log.Close(ctx); err != nil {
			return nil, err
		}
	}
	cfg.Base = best.base
	return planOne(ctx, cfg, base, numbers)
}

func planOne(
	ctx context.Context, cfg wal.Config, base *RepairReport, numbers Numbers,
) (*repairer, error) {
	log, err := wal.Open(cfg)
	if err != nil {
		return nil, err
	}
	report := *base
	r := &repairer{fs: cfg.FS, log: log, report: &report, numbers: numbers, next: 1}
	if err := r.plan(ctx); err != nil {
		return nil, errors.Join(err, log.Close(ctx))
	}
	return r, nil
}

// repairer is a repair in progress.
type repairer struct {
	fs      vfs.FS
	log     *wal.Log
	found   *wal.Inspection
	records *shardlog.Repairer
	report  *RepairReport
	numbers Numbers
	base    wal.Base
	next    shardlog.ID // the id of the next shard in the snapshot
}

// Numbers returns the sequence number of a record, as the API writes it.
type Numbers func(sh *catalogue.Shard, n shardlog.Number) string

// plan reads the directory and lists the losses.
func (r *repairer) plan(ctx context.Context) (err error) {
	items := itemstore.New(itemstore.Config{Log: r.log, Salvage: true})
	r.records = shardlog.NewRepairer(r.log, r.fs, r.report.Dir)
	streams := catalogue.New(r.records)
	r.log.Register(wal.KindItems, tolerantItems{items, r})
	r.log.Register(wal.KindCatalogue, tolerantStreams{streams, r})
	if r.found, err = r.log.Inspect(ctx); err != nil {
		return err
	}
	if r.loseSnapshots(); r.report.Refused != "" {
		return nil
	}
	for _, lost := range r.found.Lost {
		r.lose(lossOf(lost))
	}
	for _, lost := range items.Lost() {
		r.lose(Loss{
			Kind: LossItems, File: lost.File, Offset: lost.Offset,
			What: fmt.Sprintf("%s of the tables: items whose newest value was there are missing, "+
				"or have an older one", size(lost.Bytes)),
		})
	}
	streams.Read(func() {
		for st := range streams.All() {
			for _, sh := range st.Shards {
				r.records.Create(sh.Log)
			}
		}
	})
	if err := r.records.Adopt(r.next); err != nil {
		return err
	}
	if err := r.records.Plan(ctx); err != nil {
		return err
	}
	if err := r.rescue(streams); err != nil {
		return err
	}
	if r.records.Ahead() && len(r.found.Lost) == 0 {
		r.lose(Loss{
			Kind: LossUnknown, Position: uint64(r.found.End),
			What: "the log is cut off here, since segments hold later records: perhaps the " +
				"newest records and changes",
		})
	}
	names, shards := map[shardlog.ID]Loss{}, map[shardlog.ID]*catalogue.Shard{}
	streams.Read(func() {
		for st := range streams.All() {
			for _, sh := range st.Shards {
				shards[sh.Log] = sh
				names[sh.Log] = Loss{
					Account: st.World.Account, Region: st.World.Region, Stream: st.Name,
					ShardID: sh.ID(),
				}
			}
		}
	})
	for _, lost := range r.records.Lost() {
		r.lose(r.recordLoss(names[lost.Shard], shards[lost.Shard], lost,
			"their frames are damaged"))
	}
	return nil
}

// loseSnapshots lists the machines that have no state, or refuses the repair.
func (r *repairer) loseSnapshots() {
	for _, kind := range r.found.Without {
		if kind == wal.KindItems {
			r.lose(Loss{Kind: LossItems, What: "no snapshot of the tables is whole: all of them"})
			continue
		}
		r.report.Lost = nil
		r.report.Refused = "no snapshot of the streams and their records is whole, and the log " +
			"does not reach back to its beginning: restore the directory from a copy"
		return
	}
	if r.found.Snapshot.Name == "" && r.found.End == 0 { // segments alone are left
		const gone = "the log and all snapshots are gone: "
		r.lose(Loss{Kind: LossItems, What: gone + "all tables"})
		r.lose(Loss{Kind: LossStreams, What: gone + "the names and settings of all streams"})
	}
}

// rescue makes a stream for each shard that lost its own.
func (r *repairer) rescue(streams *catalogue.Catalogue) error {
	for _, orphan := range r.records.Orphans() {
		st, err := streams.Rescue(orphan.Shard, orphan.Arrival)
		if err != nil {
			return err
		}
		r.report.Saved = append(r.report.Saved, Saved{
			Folder:  strconv.FormatUint(uint64(orphan.Shard), 10),
			Records: orphan.Records,
			Account: st.World.Account, Region: st.World.Region, Stream: st.Name,
		})
	}
	return nil
}

func (r *repairer) lose(loss Loss) { r.report.Lost = append(r.report.Lost, loss) }

// lossOf describes lost frames of the log that no machine could read.
func lossOf(lost wal.LostFrames) Loss {
	loss := Loss{File: lost.File, Offset: lost.Offset, Position: uint64(lost.From)}
	switch lost.Kind {
	case wal.KindCatalogue:
		loss.Kind = LossStreams
		loss.What = "a change of the streams: they are as before it, and later changes that fit " +
			"were made"
	case wal.KindItems:
		loss.Kind = LossItems
		loss.What = "a change of items: their keys are unknown, and they may have older values"
	case wal.KindRecords:
		loss.Kind = LossRecords
		loss.What = "a change of records that cannot be read"
	case 0:
		loss.Kind = LossUnknown
		if lost.To == lost.From {
			loss.What = "the log is cut off here: perhaps the newest records and changes"
			return loss
		}
		loss.What = fmt.Sprintf("%d bytes: perhaps the newest records of a shard, a change of the "+
			"streams, or one of items", lost.To-lost.From)
	}
	return loss
}

func (r *repairer) recordLoss(
	loss Loss, sh *catalogue.Shard, lost shardlog.LostRange, why string,
) Loss {
	loss.Kind, loss.What = LossRecords, why
	loss.Folder = strconv.FormatUint(uint64(lost.Shard), 10)
	loss.From, loss.To = lost.From, lost.To
	loss.After, loss.Before = r.neighbour(sh, lost.After), r.neighbour(sh, lost.Before)
	return loss
}

// neighbour describes a record before or behind lost ones.
func (r *repairer) neighbour(sh *catalogue.Shard, n shardlog.Number) *Neighbour {
	if n.Index == 0 {
		return nil
	}
	found := &Neighbour{
		Index: n.Index, Arrival: time.UnixMilli(n.Arrival).UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	if sh != nil && r.numbers != nil {
		found.SequenceNumber = r.numbers(sh, n)
	}
	return found
}

// write makes the repair durable.
func (r *repairer) write(ctx context.Context) error {
	file, err := r.writeLosses()
	if err == nil {
		err = r.records.Write(ctx)
	}
	if err == nil {
		err = r.log.Rebase(ctx, len(r.found.Damage) > 0 || r.records.Ahead())
	}
	if err == nil {
		err = r.records.Discard()
	}
	if err != nil {
		return err
	}
	r.report.Written, r.report.List = true, file
	return nil
}

// tolerantStreams is the catalogue in a repair: it takes the changes behind lost ones that fit.
type tolerantStreams struct {
	*catalogue.Catalogue
	r *repairer
}

// Restore implements wal.Machine.
func (s tolerantStreams) Restore(snapshot []byte) error {
	err := s.Catalogue.Restore(snapshot)
	s.Read(func() { s.r.next = s.NextLog() })
	return err
}

// Replay implements wal.Machine.
func (s tolerantStreams) Replay(at wal.LSN, payload []byte) error {
	lost, err := s.Salvage(payload)
	if lost > 0 {
		s.r.lose(Loss{
			Kind: LossStreams, Position: uint64(at),
			What: fmt.Sprintf("%s of the streams before this position",
				plural(int(lost), "change", "changes")),
		})
	}
	if err != nil {
		s.r.lose(Loss{
			Kind: LossStreams, Position: uint64(at),
			What: "a change that does not fit without the lost ones: " + err.Error(),
		})
	}
	return nil
}

// tolerantItems is the items' store in a repair: it takes the changes that fit.
type tolerantItems struct {
	*itemstore.Store
	r *repairer
}

// Replay implements wal.Machine.
func (s tolerantItems) Replay(at wal.LSN, payload []byte) error {
	for _, refused := range s.Salvage(payload) {
		s.r.lose(Loss{
			Kind: LossItems, Position: uint64(at), Table: refused.Table, Key: refused.Key,
			What: "a change that does not fit without the lost ones: " + refused.Err.Error(),
		})
	}
	return nil
}
