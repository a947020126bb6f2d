package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/cloudwatch"
	"github.com/runnel-stream/runnel/server/internal/dynamo"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// engine is an open data directory and the services on it.
type engine struct {
	log      *wal.Log
	clock    *serverclock.Clock
	shards   *shardlog.Store
	kinesis  *kinesis.Service
	items    *itemstore.Store
	dynamo   *dynamo.Service
	watch    *cloudwatch.Service
	memory   *memlimit.Limit         // nil: none
	services map[string]wire.Service // by Call.Service
	schedule schedule
}

// openEngine opens the directory, recovers it, and creates the configured streams.
func openEngine(ctx context.Context, cfg settings, pauses *pause.Watch) (*engine, error) {
	log, err := wal.Open(wal.Config{
		FS: cfg.FS, Dir: cfg.Dir, SyncInterval: cfg.SyncInterval, FileSize: cfg.LogFileSize,
		Inline: cfg.Memory, KeepOne: cfg.Memory, MaxPending: cfg.share(maxPending),
		Logger: cfg.Logger,
	})
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("the data directory %s is in use by another server, or by runnel "+
			"fsck or backup: stop that, or take another directory: %w", cfg.Dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the data directory %s: %w", cfg.Dir, err)
	}
	e := &engine{log: log}
	if cfg.MemoryLimit > 0 && cfg.files != nil {
		// The files have all data but the items, the records that wait to be copied to segments,
		// and what describes a shard.
		e.memory = memlimit.New(cfg.MemoryLimit, func() int64 {
			pending, _ := log.Pending()
			shards := int64(e.shards.Count()) + e.kinesis.PlannedShards()
			return cfg.files.Memory() + pending + kinesis.ShardMemory*shards +
				e.items.Memory().Used
		})
	}
	if err := e.start(ctx, cfg, pauses); err != nil {
		return nil, errors.Join(fmt.Errorf("open the data directory %s: %w", cfg.Dir, err),
			e.close(ctx))
	}
	return e, nil
}

func (e *engine) start(ctx context.Context, cfg settings, pauses *pause.Watch) error {
	err := e.openClock(cfg)
	if err != nil {
		return err
	}
	e.shards, err = shardlog.New(shardlog.Config{
		Log: e.log, FS: cfg.FS, Dir: cfg.Dir, Logger: cfg.Logger,
		SkipDamaged: cfg.SkipDamaged,
		// One clock for records and shards, which never steps back: records of a child have arrived
		// after those of its parents.
		Now: e.clock.Now, OpenFiles: openSegments(), SegmentSize: cfg.share(maxSegment),
	})
	if err != nil {
		return err
	}
	e.kinesis, err = kinesis.New(kinesis.Config{
		Log: e.log, Shards: e.shards, StreamDelay: cfg.StreamDelay, Limits: cfg.limits,
		Memory: e.memory, Clock: e.clock, Pauses: pauses, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	e.watch, err = cloudwatch.New(cloudwatch.Config{Now: e.clock.Now})
	if err != nil {
		return err
	}
	e.items = itemstore.New(itemstore.Config{Log: e.log, MaxMemory: cfg.ItemsMemory})
	e.dynamo = dynamo.New(dynamo.Config{
		Items: e.items, Now: e.clock.Now, Logger: cfg.Logger, Memory: e.memory,
	})
	e.services = map[string]wire.Service{
		wire.Kinesis:    e.kinesis,
		wire.CloudWatch: e.watch,
		wire.STS:        cloudwatch.STS{},
		wire.DynamoDB:   e.dynamo,
	}
	if err := e.log.Start(ctx); err != nil {
		return err
	}
	if err := e.kinesis.Start(ctx); err != nil {
		return err
	}
	world := wire.World{Account: cfg.Account, Region: cfg.Region}
	for _, stream := range cfg.Streams {
		if err := e.kinesis.EnsureStream(ctx, world, stream.Name, stream.Shards); err != nil {
			return err
		}
	}
	e.schedule.faults, e.schedule.kinesis, e.schedule.log = cfg.Server.Faults, e.kinesis, cfg.Logger
	e.schedule.start(ctx)
	return nil
}

const (
	maxPending = 64 << 20 // see wal.Config.MaxPending
	maxSegment = 32 << 20 // see shardlog.Config.SegmentSize
)

// openClock opens the directory's clock. A clock in memory needs no file: after a restart there are
// no data that it could be behind.
func (e *engine) openClock(cfg settings) (err error) {
	settings := serverclock.Config{
		Wall: cfg.Wall, Boot: cfg.Boot, FS: cfg.FS, Dir: cfg.Dir, Accept: cfg.AcceptClock,
		Logger: cfg.Logger,
	}
	if cfg.Memory {
		e.clock = serverclock.New(settings)
		return nil
	}
	e.clock, err = serverclock.Open(settings)
	return err
}

// close attempts every step: it ends the services' own work, checkpoints the log and releases the
// directory, and ends the segments' writer.
func (e *engine) close(ctx context.Context) error {
	var faults []error
	e.schedule.stop()
	if e.kinesis != nil {
		faults = append(faults, e.kinesis.Close())
	}
	if e.clock != nil {
		faults = append(faults, e.clock.Close()) // while the directory is locked
	}
	faults = append(faults, e.log.Close(ctx))
	if e.shards != nil {
		faults = append(faults, e.shards.Close())
	}
	return errors.Join(faults...)
}
