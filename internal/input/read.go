package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/ndjson"
)

// Read calls take with each line of the files, in order; "-" is standard input. It ends with the
// first error of take, or with exit.ErrInterrupt when ctx ends.
func (f *Format) Read(ctx context.Context, names []string, take func(Line) error) error {
	for _, name := range names {
		if err := f.ReadFile(ctx, name, take); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads one file as Read does.
func (f *Format) ReadFile(ctx context.Context, name string, take func(Line) error) (err error) {
	file, title := os.Stdin, "standard input"
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return exit.Usage("%w", err)
		}
		title = name
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	in := console.UntilDone(ctx, file)
	defer func() { _ = in.Close() }()
	lines, err := ndjson.NewLines(title, counting{in, &f.Bytes})
	if err != nil {
		return Unreadable(ctx, err)
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	if err := f.readHeader(lines); err != nil {
		return err
	}
	where := lines.Where
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return Unreadable(ctx, err)
		}
		parsed, err := f.parse(line)
		if err != nil {
			return exit.Usage("%s: %w%s", lines.Where(), err, f.Advice)
		}
		parsed.Where = where
		if err := take(parsed); err != nil {
			return err
		}
	}
}

// Header reads the header of a file with csv; "" without one, and in the other formats.
func (f *Format) Header(ctx context.Context, name string) (string, error) {
	if f.header = nil; f.name != "csv" {
		return "", nil
	}
	err := f.ReadFile(ctx, name, func(Line) error { return exit.ErrStop })
	if errors.Is(err, exit.ErrStop) {
		err = nil
	}
	return string(f.header), err
}

// EachLine calls take with each line of a file that is not blank, or of stdin for "-". It adds the
// place of the line to an error of take.
func EachLine(
	ctx context.Context, stdin io.Reader, name string, take func(line string) error,
) error {
	if name != "-" {
		return EachLineOfFile(ctx, name, take)
	}
	in := console.UntilDone(ctx, stdin)
	defer func() { _ = in.Close() }()
	lines, err := ndjson.NewLines("standard input", in)
	if err != nil {
		return Unreadable(ctx, err)
	}
	return eachLine(ctx, lines, take)
}

// EachLineOfFile does the same for a file of any name.
func EachLineOfFile(ctx context.Context, name string, take func(line string) error) error {
	lines, err := ndjson.OpenFile(name)
	if err != nil {
		return Unreadable(ctx, err)
	}
	return eachLine(ctx, lines, take)
}

// eachLine calls take with each line, and closes the lines.
func eachLine(
	ctx context.Context, lines *ndjson.Lines, take func(line string) error,
) (err error) {
	defer func() { err = errors.Join(err, lines.Close()) }()
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return Unreadable(ctx, err)
		}
		if err := take(string(line)); err != nil {
			return fmt.Errorf("%s: %w", lines.Where(), err)
		}
	}
}

// Unreadable gives the error of input that cannot be read its exit status: interrupted if ctx has
// ended, and wrong usage otherwise.
func Unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit.ErrInterrupt
	}
	return exit.Usage("%w", err)
}
