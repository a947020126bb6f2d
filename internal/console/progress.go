package console

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// Progress shows lines that change: redrawn in place on a terminal, otherwise only the first
// of them, now and then. It is used by one goroutine.
type Progress struct {
	out     io.Writer
	columns int
	redraw  bool
	off     bool
	drawn   int
	last    time.Time
}

// How often progress is drawn on a terminal and in a log.
const (
	RedrawEvery = 100 * time.Millisecond
	logEvery    = 5 * time.Second
)

// NewProgress returns a progress line of the console.
func (c *Console) NewProgress() *Progress {
	columns, redraw := Terminal(c.Err)
	return &Progress{out: c.Err, columns: columns, redraw: redraw, off: c.Quiet, last: time.Now()}
}

// Watch shows a changing line until the function that it returns is called, which clears it.
func (c *Console) Watch(ctx context.Context, line func() string) (stop func()) {
	return c.WatchLines(ctx, func() []string { return []string{line()} })
}

// WatchLines does so with several lines, of which the first counts without a terminal.
func (c *Console) WatchLines(ctx context.Context, lines func() []string) (stop func()) {
	show := c.NewProgress()
	drawing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for retry.Wait(drawing, RedrawEvery) == nil {
			show.Show(lines)
		}
	}()
	return func() {
		cancel()
		<-done
		show.Clear()
	}
}

// Show draws the lines if it is time to.
func (p *Progress) Show(lines func() []string) {
	every := logEvery
	if p.redraw {
		every = RedrawEvery
	}
	if p.off || time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	if !p.redraw {
		_, _ = fmt.Fprintln(p.out, lines()[0])
		return
	}
	p.draw(lines())
}

func (p *Progress) draw(lines []string) {
	var screen strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&screen, "\x1b[%dA", p.drawn)
	}
	for _, line := range lines {
		if runes := []rune(line); len(runes) > p.columns-1 {
			line = string(runes[:p.columns-1])
		}
		fmt.Fprintf(&screen, "\r\x1b[2K%s\n", line)
	}
	for range p.drawn - len(lines) {
		screen.WriteString("\r\x1b[2K\n")
	}
	if extra := p.drawn - len(lines); extra > 0 {
		fmt.Fprintf(&screen, "\x1b[%dA", extra)
	}
	p.drawn = len(lines)
	_, _ = io.WriteString(p.out, screen.String())
}

// Say prints a line that stays, above the changing ones.
func (p *Progress) Say(format string, args ...any) {
	if p.off {
		return
	}
	if p.redraw && p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// Clear removes the changing lines.
func (p *Progress) Clear() {
	if p.redraw && p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}
