package demo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/retry"
)

// newsBuffer is the highest number of messages that wait while the screen is busy. Further
// messages are dropped.
const newsBuffer = 256

// screen shows news and progress. One goroutine draws; any goroutine may send news.
type screen struct {
	progress *console.Progress
	lines    chan string // news that was not drawn yet
}

func newScreen(con *console.Console) *screen {
	return &screen{progress: con.NewProgress(), lines: make(chan string, newsBuffer)}
}

// demoLogger returns a logger for errors only, unless --verbose is set: failed and retried calls
// while the server is down are an expected part of the demo.
func demoLogger(con *console.Console) *slog.Logger {
	if con.Verbose {
		return con.Logger()
	}
	return con.LoggerFrom(slog.LevelError)
}

// news shows a message. It does not block.
func (s *screen) news(format string, args ...any) {
	select {
	case s.lines <- fmt.Sprintf(format, args...):
	default:
	}
}

func (s *screen) clear() { s.progress.Clear() }

// draw shows news and progress until ctx ends. It closes the channel that it returns after the last
// line.
func (s *screen) draw(ctx context.Context, progress func() []string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for retry.Wait(ctx, console.RedrawEvery) == nil {
			s.drawNews()
			s.progress.Show(progress)
		}
		s.drawNews()
		s.progress.Clear()
	}()
	return done
}

func (s *screen) drawNews() {
	for len(s.lines) > 0 {
		s.progress.Say("%s", <-s.lines)
	}
}

// lines returns the progress of the run.
func (d *demo) lines() []string {
	acked, took := d.acked.Load(), time.Since(d.started)
	archived := min(d.fleet.committed.Load(), d.events.total)
	lines := []string{
		fmt.Sprintf("put      %s %9s of %s  %s/s",
			console.Bar(acked, d.events.total, 30), console.Thousands(acked),
			console.Thousands(d.events.total), console.Thousands(console.Rate(acked, took))),
		fmt.Sprintf("archived %s %9s",
			console.Bar(archived, d.events.total, 30), console.Thousands(archived)),
	}
	return append(lines, d.fleet.lines()...)
}
