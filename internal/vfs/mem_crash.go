package vfs

import (
	"math/rand/v2"
	"slices"
)

// Crash returns a copy of the disk after a loss of power at this instant. m must come from
// NewCrashable, and continues unaffected. The copy can crash in turn. rng chooses among the
// possible outcomes:
//
//   - Synced data is there. Each 512-byte sector written since has its content of the last Sync
//     or its newest content; the very last one may be torn.
//   - A file's length is that of the last Sync, or the newest, or between them.
//   - Each operation on names that no SyncDir covered has happened or has not, but never half: a
//     replaced name refers to the old file or to the new one.
//   - No lock is held.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	if !m.track {
		panic("vfs: Crash of a Mem that is not from NewCrashable")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instant.Lock()
	defer m.instant.Unlock()
	odds := drawOdds(rng)

	names := make(map[*node]map[string]*node) // folders with an unsynced operation
	view := func(dir *node) map[string]*node {
		if names[dir] == nil {
			names[dir] = make(map[string]*node, len(dir.durable))
			for name, n := range dir.durable {
				names[dir][name] = n
			}
		}
		return names[dir]
	}
	for _, op := range m.pending {
		if odds.keep(rng) {
			op.apply(view)
		}
	}

	after := NewCrashable()
	after.limit.Store(m.limit.Load())
	c := crash{rng: rng, odds: odds, to: after, view: view, done: make(map[*node]*node)}
	after.root = c.dir(m.root)
	return after
}

// odds is the share of the unsynced changes that survives: all, none, or about that share.
type odds float64

func drawOdds(rng *rand.Rand) odds {
	switch rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return 0.5
	default:
		return odds(rng.Float64())
	}
}

func (o odds) keep(rng *rand.Rand) bool { return rng.Float64() < float64(o) }

type crash struct {
	rng  *rand.Rand
	odds odds
	to   *Mem
	view func(dir *node) map[string]*node
	done map[*node]*node // files with several names stay one file
}

func (c *crash) dir(old *node) *node {
	dir := newDir(true)
	for _, name := range sortedNames(c.view(old)) { // sorted: one seed, one outcome
		from := c.view(old)[name]
		to := c.done[from]
		switch {
		case to != nil:
		case from.isDir():
			to = c.dir(from)
		default:
			to = &node{data: c.file(from.data)}
		}
		c.done[from] = to
		to.links++
		dir.entries[name], dir.durable[name] = to, to
	}
	return dir
}

func (c *crash) file(old *memData) *memData {
	old.mu.RLock()
	defer old.mu.RUnlock()
	d := &memData{fs: c.to, mod: old.mod, pages: make([]page, len(old.pages))}
	for i, pg := range old.pages {
		d.pages[i] = slices.Clone(pg)
	}
	d.count(bytesIn(d.pages))
	d.size = c.size(old.unsync.size, old.size)
	for _, s := range sortedKeys(old.unsync.before, old.unsync.doomed) {
		before, ok := old.unsync.before[s]
		if !ok {
			before = old.unsync.doomed[s]
		}
		c.sector(d, s, before, s == old.unsync.last)
	}
	d.zeroTail()
	d.unsync = newUnsynced(d.size)
	c.to.used.Add(d.size)
	return d
}

func (c *crash) size(synced, now int64) int64 {
	lo, hi := min(synced, now), max(synced, now)
	switch {
	case c.odds.keep(c.rng):
		return now
	case c.rng.IntN(2) == 0:
		return synced
	default:
		return lo + c.rng.Int64N(hi-lo+1)
	}
}

func (c *crash) sector(d *memData, s int64, before *sector, last bool) {
	if before == nil {
		before = new(sector)
	}
	from := 0
	if last && c.rng.IntN(3) == 0 {
		from = c.rng.IntN(sectorSize) // new up to here, old from here on
	} else if c.odds.keep(c.rng) {
		return
	}
	at := s * sectorSize % pageSize
	pg := d.pageFor(s*sectorSize/pageSize, int(at)+sectorSize)
	copy(pg[at+int64(from):at+sectorSize], before[from:])
}
