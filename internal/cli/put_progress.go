package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/producer"
)

// watchPut shows the progress of a put: a bar on a terminal, and a line every few seconds
// elsewhere.
func watchPut(
	ctx context.Context, con *console.Console, p *producer.Producer, from putSource,
) (stop func()) {
	start := time.Now()
	_, screen := console.Terminal(con.Err)
	return con.WatchLines(ctx, func() []string {
		stats, took := p.Stats(), time.Since(start)
		if screen {
			return []string{from.bar(took), putLine(stats, took)}
		}
		return []string{putLine(stats, took)}
	})
}

func putLine(s producer.Stats, took time.Duration) string {
	return fmt.Sprintf("put %s records, %s/s, %s calls, %d waiting, the oldest %.1f s, "+
		"%d retried, %d unknown",
		console.Thousands(s.Delivered), console.Thousands(console.Rate(s.Delivered, took)),
		console.Thousands(s.Calls), s.Buffered, s.OldestAge.Seconds(), s.Retried, s.Unknown)
}
