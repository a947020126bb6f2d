package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
)

// newsBuffer is the highest number of messages that wait while the screen is busy. Further
// messages are dropped, which loses only their lines.
const newsBuffer = 256

// logger logs errors only, unless --verbose is set: failed and retried calls while the server is
// down are an expected part of the demo.
func (d *demo) logger() *slog.Logger {
	if d.app.Verbose {
		return d.app.Logger()
	}
	return d.app.LoggerFrom(slog.LevelError)
}

// news shows a message. It does not block.
func (d *demo) news(format string, args ...any) {
	select {
	case d.told <- fmt.Sprintf(format, args...):
	default:
	}
}

// draw shows news and progress until ctx ends; the channel it returns is closed then.
func (d *demo) draw(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(console.RedrawEvery)
		defer tick.Stop()
		for {
			select {
			case line := <-d.told:
				d.show.Say("%s", line)
			case <-tick.C:
				d.show.Show(d.lines)
			case <-ctx.Done():
				for len(d.told) > 0 {
					d.show.Say("%s", <-d.told)
				}
				d.show.Clear()
				return
			}
		}
	}()
	return done
}

func (d *demo) lines() []string {
	acked, took := d.acked.Load(), time.Since(d.started)
	archived := min(d.fleet.committed.Load(), d.total)
	lines := []string{
		fmt.Sprintf("put      %s %9s of %s  %s/s", console.Bar(acked, d.total, 30), console.Thousands(acked),
			console.Thousands(d.total), console.Thousands(console.Rate(acked, took))),
		fmt.Sprintf("archived %s %9s", console.Bar(archived, d.total, 30), console.Thousands(archived)),
	}
	return append(lines, d.fleet.lines()...)
}
