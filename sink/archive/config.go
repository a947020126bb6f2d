package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
)

// Config is the configuration of an archive: its place and its commits. One of Dir and Store is
// required; every other zero value is useful.
type Config struct {
	// Dir is the folder of the archive, made if it is missing. No default.
	Dir string
	// Store holds the archive's objects instead of a folder. Default: the folder Dir.
	Store Store
	// Every is the largest age of a link, counted from its first record: a link is committed by
	// then, if Write is called by then. If the reader has dropped all records, that progress is
	// committed at twelve times that age. Default 5s; at least 1ms.
	Every time.Duration
	// Size is the number of bytes, before compression, at which a link is committed. A link exceeds
	// it by one batch at most, since it ends at the end of a Write's batch. Size bounds a shard's
	// memory, which holds the compressed form. Default 64 MiB; at least 1 byte, at most 1 GiB.
	Size int64
	// Whole is the largest distance, in links, between two links with the reader's whole state; the
	// others hold its change. Default 64; 1 to 64.
	Whole int
	// Map changes a record before it is archived, or drops it: keep is false. It gets a copy, may
	// replace its Data and keys, and must not change the bytes of Data. Its changes of the place
	// and the arrival time are ignored. After an error the whole batch is mapped again, with
	// pauses, as long as the shard is held. It must do the same with a record each time, since a
	// batch may come again. The link counts the dropped records. Default: records are archived as
	// they are.
	Map func(ctx context.Context, record *runnel.Record) (keep bool, err error)
	// OnOutage is called when a writer waits, for its store or after an error of Map, which is at
	// each failed call; see ErrStoreUnavailable. Calls may come from several goroutines. Default:
	// none.
	OnOutage func(Outage)
	// OnTip is called for each tip that a writer reaches: by opening a shard, by a commit, and by
	// adopting another writer's commits. It must not block. Calls may come from several goroutines.
	// Default: none.
	OnTip func(Tip)
	// OnDiscard is called with the number of records that a writer has taken and discards without a
	// commit: because another writer's commit has come first, after an error, or at its end. They
	// are in the other's commit, or are read again. It must not block. Calls may come from several
	// goroutines. Default: none.
	OnDiscard func(records int64)
	// WriterID names the writer in its links, for people. Default: random.
	WriterID string
}

const (
	defaultEvery = 5 * time.Second
	defaultSize  = 64 << 20
	maxSize      = 1 << 30
	maxWhole     = 64
	maxWriterID  = 256
)

func (c Config) withDefaults() Config {
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Size == 0 {
		c.Size = defaultSize
	}
	if c.Whole == 0 {
		c.Whole = maxWhole
	}
	if c.WriterID == "" {
		c.WriterID = rand.Text()
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("archive: "+format, args...))
		}
	}
	fault(c.Dir == "" && c.Store == nil,
		"Dir is missing: want the folder of the archive, or a Store instead")
	fault(c.Dir != "" && c.Store != nil, "Dir is %q and Store is set: want one of the two", c.Dir)
	fault(c.Every != 0 && c.Every < time.Millisecond, "Every is %s: want 1ms or more", c.Every)
	fault(c.Size < 0 || c.Size > maxSize, "Size is %d: want 1 to %d bytes", c.Size, maxSize)
	fault(c.Whole < 0 || c.Whole > maxWhole, "Whole is %d: want 1 to %d", c.Whole, maxWhole)
	fault(len(c.WriterID) > maxWriterID, "WriterID is %d bytes long: want at most %d",
		len(c.WriterID), maxWriterID)
	return errors.Join(faults...)
}
