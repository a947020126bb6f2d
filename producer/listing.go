package producer

import (
	"context"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// list lists the shards because the core needs them.
func (p *Producer) list() {
	err := p.listFor(p.life, func() bool { return true })
	p.mu.Lock()
	p.mu.core.chart.running = false
	first := p.mu.core.chart.failures == 1
	p.mu.Unlock()
	p.halt()
	if err != nil && first && p.life.Err() == nil {
		p.cfg.Logger.Warn("the shards cannot be listed, and it is tried again",
			"stream", p.cfg.Stream, "error", err)
	}
	signal(p.deliverNow)
	signal(p.scheduleNow)
}

// listFor lists the shards for the core, unless wanted returns false when its turn comes. Only one
// listing runs at a time, so that the core gets the newest list last.
func (p *Producer) listFor(ctx context.Context, wanted func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	select {
	case p.charting <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.charting }()
	if !wanted() {
		return nil
	}
	shards, err := shardmap.List(ctx, lister{p: p}, p.cfg.Stream, nil)
	err = p.lasting(ctx, p.cfg.Reader, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.core.takeShards(p.clock.now(), shards, err)
}

// chartAnswer lists the shards until every shard that an answer names is known. Without its range
// it is not known whether readers drop the records that it has stored. chartAnswer gives up after
// CallTimeout.
func (p *Producer) chartAnswer(o outcome) {
	if !p.mu.core.chart.needed { // it never changes
		return
	}
	ctx, cancel := context.WithTimeoutCause(p.life, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	wanted := func() bool { return p.unlisted(o) }
	for attempt := 1; wanted(); attempt++ {
		if err := p.listFor(ctx, wanted); err == nil && !wanted() || isFinal(err) {
			return
		}
		if p.cfg.backoff().Wait(ctx, attempt) != nil {
			return
		}
	}
}

// unlisted reports whether an answer names a shard that is not known.
func (p *Producer) unlisted(o outcome) bool {
	var shards []runnel.ShardID
	for _, v := range o.each {
		if v.fate == stored && (len(shards) == 0 || shards[len(shards)-1] != v.shard) {
			shards = append(shards, v.shard)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shard := range shards {
		if _, known := p.mu.core.chart.ranges[shard]; !known {
			return true
		}
	}
	return false
}
