package consumer

import (
	"math"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pages"
)

// budgets holds the budget of each shard that the worker reads. The shard's fetcher, its rebuilder
// and a probe take from the same one, and a fetcher that begins again knows the last one's rate.
// It is safe for concurrent use.
type budgets struct {
	mu     sync.Mutex
	shards map[runnel.ShardID]*pages.Budget
}

// budgetLife is the time for which a budget without calls is kept.
const budgetLife = time.Hour

// budget returns a shard's budget.
func (r *run) budget(shard runnel.ShardID) *pages.Budget {
	b := &r.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	if budget, known := b.shards[shard]; known {
		return budget
	}
	for id, old := range b.shards {
		if time.Since(old.Used()) > budgetLife {
			delete(b.shards, id)
		}
	}
	if b.shards == nil {
		b.shards = map[runnel.ShardID]*pages.Budget{}
	}
	budget := pages.NewBudget(pages.LimitsOf(r.cfg.Kinesis, r.cfg.ReadRate))
	b.shards[shard] = budget
	return budget
}

// The default of Config.PollInterval. Where calls are limited, an idle shard costs two a second.
const (
	pollInterval        = 250 * time.Millisecond
	limitedPollInterval = 500 * time.Millisecond
)

func (c *Config) defaultPollInterval() time.Duration {
	if pages.LimitsOf(c.Kinesis, c.ReadRate).Calls > 0 {
		return limitedPollInterval
	}
	return pollInterval
}

// isRate reports whether a ReadRate is a number of calls, or 0.
func isRate(rate float64) bool { return rate >= 0 && !math.IsInf(rate, 1) }
