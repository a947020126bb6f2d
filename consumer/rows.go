package consumer

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// rows are the rows of the lease table that cannot be read. The worker leaves them alone, with
// their shards and the descendants of these, and goes on with the others.
type rows struct {
	mu       sync.Mutex
	reported map[string]bool
}

// reportRow reports once that a row cannot be read.
func (r *run) reportRow(key string, err error) {
	r.rows.mu.Lock()
	defer r.rows.mu.Unlock()
	if r.rows.reported[key] {
		return
	}
	if r.rows.reported == nil {
		r.rows.reported = map[string]bool{}
	}
	r.rows.reported[key] = true
	r.cfg.Logger.Error("a row of the lease table cannot be read: its shard, and those that come "+
		"from it, wait until it is mended or deleted", "worker", r.cfg.WorkerID,
		"stream", r.cfg.Stream, "table", r.table.Name(), "row", key, "error", err)
	r.observe(Event{Kind: EventFailed, ShardID: runnel.ShardID(key), Err: err})
}

func (r *run) reportRows(skipped []lease.Skipped) {
	for _, s := range skipped {
		r.reportRow(s.Key, s.Err)
	}
}

// readable leaves out the leases that come from rows that cannot be read.
func readable(view []lease.Sighting, skipped []lease.Skipped) []lease.Sighting {
	if len(skipped) == 0 {
		return view
	}
	barred := map[runnel.ShardID]bool{}
	for _, s := range skipped {
		barred[runnel.ShardID(s.Key)] = true
	}
	for before := -1; before < len(barred); {
		before = len(barred)
		for _, s := range view {
			if slices.ContainsFunc(s.Parents, func(id runnel.ShardID) bool { return barred[id] }) {
				barred[s.Key] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(view), func(s lease.Sighting) bool {
		return barred[s.Key]
	})
}

// rowError is the error that ends a worker with Config.Once if rows cannot be read.
func rowError(table string, skipped []lease.Skipped) error {
	keys := make([]string, len(skipped))
	for i, s := range skipped {
		keys[i] = s.Key
	}
	return fmt.Errorf("%d rows of the lease table %s cannot be read, and their shards were not: "+
		"%s: mend the rows, or delete them to begin with those shards anew: %w", len(keys), table,
		strings.Join(keys, ", "), skipped[0].Err)
}
