package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// terminal returns the width of the terminal behind w, and whether there is one.
func terminal(w io.Writer) (columns int, ok bool) {
	if out, ok := w.(output); ok {
		w = out.Writer
	}
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns < 40 {
		columns = 80
	}
	return columns, true
}

// typedAgain asks the user to type a name on the terminal. If the name differs, or there is no
// terminal, the error says that nothing was done and how to do it.
func (a *app) typedAgain(ctx context.Context, name, done string) error {
	refused := usageError("nothing was %s: say --yes, or type the name on a terminal", done)
	in, ok := a.In.(*os.File)
	if _, screen := terminal(a.Err); !ok || !screen || !term.IsTerminal(int(in.Fd())) {
		return refused
	}
	_, _ = fmt.Fprintf(a.Err, "type %s to go on: ", name)
	typed := untilDone(ctx, in)
	defer func() { _ = typed.Close() }()
	line, _ := bufio.NewReader(typed).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return errInterrupt
	case strings.TrimSpace(line) != name:
		return refused
	}
	return nil
}

// progress shows lines that change: redrawn in place on a terminal, otherwise only the first
// of them, now and then. It is used by one goroutine.
type progress struct {
	out     io.Writer
	columns int
	redraw  bool
	off     bool
	drawn   int
	last    time.Time
}

// How often progress is drawn on a terminal and in a log.
const (
	redrawEvery = 100 * time.Millisecond
	logEvery    = 5 * time.Second
)

func (a *app) newProgress() *progress {
	columns, redraw := terminal(a.Err)
	return &progress{out: a.Err, columns: columns, redraw: redraw, off: a.quiet, last: time.Now()}
}

// watch shows a changing line until the function that it returns is called, which clears it.
func (a *app) watch(ctx context.Context, line func() string) (stop func()) {
	return a.watchLines(ctx, func() []string { return []string{line()} })
}

// watchLines does so with several lines, of which the first counts without a terminal.
func (a *app) watchLines(ctx context.Context, lines func() []string) (stop func()) {
	show := a.newProgress()
	drawing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(drawing, redrawEvery) == nil {
			show.show(lines)
		}
	}()
	return func() {
		cancel()
		<-done
		show.clear()
	}
}

// show draws the lines if it is time to.
func (p *progress) show(lines func() []string) {
	every := logEvery
	if p.redraw {
		every = redrawEvery
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

func (p *progress) draw(lines []string) {
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

// say prints a line that stays, above the changing ones.
func (p *progress) say(format string, args ...any) {
	if p.off {
		return
	}
	if p.redraw && p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// clear removes the changing lines.
func (p *progress) clear() {
	if p.redraw && p.drawn > 0 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// bar draws done of total as a bar of the given width.
func bar(done, total int64, width int) string {
	filled := 0
	if total > 0 {
		filled = int(min(done, total) * int64(width) / total)
	}
	return strings.Repeat("━", filled) + strings.Repeat("─", width-filled)
}

// thousands writes 1234567 as 1,234,567.
func thousands[N int | int64 | uint64](n N) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// rate is n a second.
func rate[N int | int64 | uint64](n N, took time.Duration) int64 {
	return int64(float64(n) / max(took.Seconds(), 1e-3))
}
