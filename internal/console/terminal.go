package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/runnel-stream/runnel/internal/exit"
)

// Terminal returns the width of the terminal behind w, and whether there is one.
func Terminal(w io.Writer) (columns int, ok bool) {
	if out, ok := w.(exit.Output); ok {
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

// Columns returns the width of the terminal at Out, or 80 without one.
func (c *Console) Columns() int {
	if columns, ok := Terminal(c.Out); ok {
		return columns
	}
	return 80
}

// Confirm asks the user to type a name on the terminal. If the name differs, or there is no
// terminal, the error reports that nothing was done, and how to do it.
func (c *Console) Confirm(ctx context.Context, name, done string) error {
	refused := exit.Usage("nothing was %s: say --yes, or type the name on a terminal", done)
	in, ok := c.In.(*os.File)
	if _, screen := Terminal(c.Err); !ok || !screen || !term.IsTerminal(int(in.Fd())) {
		return refused
	}
	_, _ = fmt.Fprintf(c.Err, "type %s to go on: ", name)
	typed := UntilDone(ctx, in)
	defer func() { _ = typed.Close() }()
	line, _ := bufio.NewReader(typed).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case strings.TrimSpace(line) != name:
		return refused
	}
	return nil
}

// UntilDone returns a reader of in that ends with ctx, also while a read of in blocks, as of a
// terminal or a pipe. The caller closes it. One read of in may still be under way after that.
func UntilDone(ctx context.Context, in io.Reader) io.ReadCloser {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return io.NopCloser(in)
		}
	}
	out, into := io.Pipe()
	stop := context.AfterFunc(ctx, func() { into.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		_, err := io.Copy(into, in)
		into.CloseWithError(err)
	}()
	return out
}
