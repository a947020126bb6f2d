package fsck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

const (
	lostStart = "a server does not start with it: restore the directory from a copy, or try " +
		"runnel fsck --repair, and look for a failing disk"
	lostNothing = "nothing: a start does without it, or with the snapshot before; look for a " +
		"failing disk"
	lostCatalogue = "a server would not know of them: restore the directory from a copy"
)

// Check reads a data directory, with its lock, and reports. Errors: wal.ErrNoLog if it is no data
// directory, wal.ErrNewerFormat, vfs.ErrLocked, ctx's, and those of reading. Damage is no error.
func Check(ctx context.Context, fsys vfs.FS, dir string) (*Report, error) {
	c := &checker{fs: vfs.ReadOnly(fsys), report: &Report{Dir: dir}}
	log, err := wal.Open(wal.Config{FS: fsys, Dir: dir, ReadOnly: true})
	switch {
	case errors.Is(err, wal.ErrFormat) && !errors.Is(err, wal.ErrNewerFormat):
		c.damage(Damage{File: path.Join(dir, "FORMAT"), What: err.Error(), Lost: lostStart})
		return c.report, nil
	case err != nil:
		return nil, err
	}
	c.log = log
	return c.report, errors.Join(c.check(ctx), log.Close(ctx))
}

// checker is a check in progress.
type checker struct {
	fs      vfs.FS
	log     *wal.Log
	records *shardlog.Inspector
	report  *Report
	names   map[shardlog.ID]string // of shards, as "orders shardId-000000000000"
}

func (c *checker) damage(d Damage) { c.report.Damage = append(c.report.Damage, d) }

func (c *checker) check(ctx context.Context) error {
	items := itemstore.New(itemstore.Config{Log: c.log})
	c.records = shardlog.NewInspector(c.log, c.fs, c.report.Dir)
	streams := catalogue.New(c.records.Store())
	c.log.Register(wal.KindCatalogue, streams)
	log, err := c.log.Inspect(ctx)
	if err != nil {
		return err
	}
	c.setLog(log)
	streams.Read(func() { c.streams(streams) })
	if err := c.segments(ctx); err != nil {
		return err
	}
	for _, t := range items.Inspect() {
		c.report.Tables = append(c.report.Tables, Table{
			Account: t.Meta.World.Account, Region: t.Meta.World.Region, Name: t.Meta.Name,
			Items: t.Items, Bytes: t.Bytes,
		})
	}
	files, err := items.Files()
	if err != nil {
		return err
	}
	c.report.Items = Items{Files: files.Count, Bytes: files.Bytes}
	c.report.Leftover = append(c.report.Leftover, files.Leftover...)
	if err := c.others(); err != nil {
		return err
	}
	c.report.Bytes = c.report.Snapshot.Bytes + c.report.Log.Bytes + c.report.Records.Bytes +
		c.report.Items.Bytes
	c.report.OK = len(c.report.Damage) == 0
	return nil
}

func (c *checker) setLog(found *wal.Inspection) {
	r := c.report
	r.Format, r.Leftover = found.Format, found.Leftover
	r.Snapshot = Snapshot{
		File: found.Snapshot.Name, Position: uint64(found.Snapshot.LSN),
		Bytes: found.Snapshot.Size,
	}
	r.Log = Log{Files: len(found.Files), Marks: found.Marks, End: uint64(found.End)}
	for _, f := range found.Files {
		r.Log.Bytes += f.Size
		r.Log.Frames += f.Frames
		if f.Spare {
			r.Log.Spares++
		} else {
			r.Log.Newest = f.Name
		}
	}
	if found.End > found.Synced {
		r.Log.Unsynced = uint64(found.End - found.Synced)
	}
	r.Log.Lossy = found.Lossy
	if t := found.Torn; t != nil {
		r.Log.Torn = &Torn{File: t.File, Offset: t.Offset, Bytes: t.Size}
	}
	for _, d := range found.Damage {
		c.damage(damageOf(d, lostStart))
	}
	for _, d := range found.Spare {
		c.damage(damageOf(d, lostNothing))
	}
}

func damageOf(d *wal.CorruptError, lost string) Damage {
	what := d.Reason
	if d.LSN > 0 {
		what = fmt.Sprintf("%s (log position %d)", d.Reason, d.LSN)
	}
	return Damage{File: d.File, Offset: d.Offset, What: what, Lost: lost}
}

// segments reads all segments, and reports damage as sentences.
func (c *checker) segments(ctx context.Context) error {
	found, err := c.records.Files(ctx)
	if err != nil {
		return err
	}
	r := c.report
	r.Leftover = append(r.Leftover, found.Leftover...)
	r.Foreign = append(r.Foreign, found.Foreign...)
	r.Records.Bytes = found.Bytes
	for _, sh := range c.records.Shards() {
		r.Records.Segments += sh.Segments
		r.Records.Count += sh.Next - sh.Oldest - sh.Lost
		r.Records.Lost += sh.Lost
		r.Records.InLog += sh.InLog
	}
	for _, d := range found.Damage {
		name := c.names[d.Shard]
		if name == "" {
			name = fmt.Sprintf("shard folder %d", d.Shard)
		}
		lost := "nothing that can be read"
		if d.To > d.From {
			lost = fmt.Sprintf("%s of %s, the indexes %d to %d",
				plural(int(d.To-d.From), "record", "records"), name, d.From, d.To-1)
		}
		c.damage(Damage{File: d.File, Offset: d.Offset, What: d.Reason, Lost: lost})
	}
	return nil
}

// others lists the other files of the directory.
func (c *checker) others() error {
	names, err := c.fs.List(c.report.Dir)
	if err != nil {
		return err
	}
	known := map[string]bool{
		"FORMAT": true, "LOCK": true, "wal": true, "shards": true, "tls": true,
		wal.HoldFolder: true, itemstore.FolderName: true,
		serverclock.FileName: true,
	}
	if _, c.report.Clock, err = serverclock.Inspect(c.fs, c.report.Dir); err != nil {
		return err
	}
	for _, file := range append(c.report.Leftover, c.report.Snapshot.File) {
		known[path.Base(file)] = true
	}
	for _, name := range names {
		if wal.IsSnapshot(name) || isLossList(name) {
			known[name] = true
		}
		if isLossList(name) {
			c.report.Lists = append(c.report.Lists, path.Join(c.report.Dir, name))
		}
	}
	for _, name := range names {
		if !known[name] {
			c.report.Foreign = append(c.report.Foreign, path.Join(c.report.Dir, name))
		}
	}
	if _, err := c.fs.List(path.Join(c.report.Dir, "shards")); errors.Is(err, fs.ErrNotExist) &&
		c.report.Records.Segments > 0 {
		c.damage(Damage{
			File: path.Join(c.report.Dir, "shards"), What: "the folder is missing",
			Lost: "all records in segments",
		})
	}
	return nil
}
