package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/producer"
)

// reasonOf returns the part of a record's error that the state keeps: the reason and the last
// answer.
func reasonOf(err error) string {
	var undelivered *producer.UndeliveredError
	switch {
	case !errors.As(err, &undelivered):
		return ""
	case undelivered.Cause == nil:
		return undelivered.Reason.Error()
	}
	return fmt.Sprintf("%v: %v", undelivered.Reason, undelivered.Cause)
}

// nothingToDo ends a put of a load that is complete except for refused records.
func (j *putJob) nothingToDo(ctx context.Context) error {
	refused := len(j.state.Refused())
	if refused == 0 {
		j.con.Say("nothing to do: %s says that everything is in the stream", j.resume)
	}
	if err := rows.Print(j.con.Out, j.con.JSON(), putCounts{Refused: refused}); err != nil {
		return err
	}
	return j.endRefused(ctx)
}

// finish ends a put that has read all of its input.
func (j *putJob) finish(ctx context.Context) error {
	if err := j.state.Finish(); err != nil {
		return exit.Outside(err)
	}
	return j.endRefused(ctx)
}

// endRefused ends a load with refused records: it writes them out, or fails with status 1.
func (j *putJob) endRefused(ctx context.Context) error {
	refused := j.state.Refused()
	if len(refused) == 0 {
		return nil
	}
	lines, err := j.refusedLines(ctx, refused)
	if err != nil {
		return err
	}
	if j.skip != "" {
		return j.skipRefused(refused, lines)
	}
	for i, line := range lines[:min(len(lines), mostNamed)] {
		j.con.Say("%s: not in the stream: %s", line.where, line.reason(refused[i]))
	}
	if more := len(lines) - mostNamed; more > 0 {
		j.con.Say("and %s more", console.Thousands(more))
	}
	return &exit.Error{Status: exit.StatusNo, Err: fmt.Errorf("%s of the input's records are not "+
		"in the stream, the first is %s; %s keeps that until --skip-refused FILE has written "+
		"them to FILE", console.Thousands(len(refused)), lines[0].where, j.resume)}
}

// pass names a record that no stream takes, and passes it. It is for a source that is no file: the
// user cannot mend it.
func (j *putJob) pass(l input.Line, err error) {
	if j.passed++; j.passed <= mostNamed {
		j.con.Say("%s: not in the stream: %v", l.Where(), err)
	}
}

// endPassed ends a put that has passed records.
func (j *putJob) endPassed() error {
	if j.passed == 0 {
		return nil
	}
	return &exit.Error{Status: exit.StatusNo, Err: fmt.Errorf("%s of the records are not in the "+
		"stream: no stream takes them", console.Thousands(j.passed))}
}

// mostNamed is the highest number of refused records that are named one by one.
const mostNamed = 100

// refusedLine is a refused record's line of the input.
type refusedLine struct {
	where  string
	header []byte // of its file, with csv
	data   []byte
}

func (refusedLine) reason(r putlog.Refused) string {
	if r.Reason == "" {
		return "an earlier version of runnel has reported why"
	}
	return r.Reason
}

// refusedLines reads the lines of refused records, which are in the order of the input.
func (j *putJob) refusedLines(
	ctx context.Context, refused []putlog.Refused,
) ([]refusedLine, error) {
	lines := make([]refusedLine, 0, len(refused))
	mark := uint64(0)
	err := j.from.read(ctx, func(l input.Line) error {
		if mark == refused[len(lines)].Mark {
			line := refusedLine{where: l.Where(), header: l.Header, data: l.Data}
			if l.Kept != nil {
				line.data = l.Kept()
			}
			line.data = bytes.Clone(line.data)
			lines = append(lines, line)
			if len(lines) == len(refused) {
				return exit.ErrStop
			}
		}
		mark++
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, exit.ErrStop):
		return nil, err
	case len(lines) < len(refused):
		return nil, exit.Usage("--resume %s: the input ends before record %d, which was refused; "+
			"bring it back, or name a new state", j.resume, refused[len(lines)].Mark+1)
	}
	return lines, nil
}

// skipRefused appends the lines of refused records to the file of --skip-refused, and then lets the
// state forget them. A crash in between leaves both, so that no line is lost.
func (j *putJob) skipRefused(refused []putlog.Refused, lines []refusedLine) error {
	name := j.skip
	if err := appendLines(name, lines); err != nil {
		return err
	}
	if err := j.state.Forget(refused); err != nil {
		return exit.Outside(err)
	}
	j.con.Say("%s refused records were appended to %s", console.Thousands(len(lines)), name)
	return nil
}

// appendLines appends lines to a file, durably. A file of csv has the header of its lines.
func appendLines(name string, lines []refusedLine) (err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return exit.Usage("--skip-refused: %w", err)
	}
	defer func() { err = errors.Join(err, exit.Outside(file.Close())) }()
	text, err := linesFor(name, file, lines)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = vfs.OS{}.SyncDir(filepath.ToSlash(filepath.Dir(name)))
	}
	if err != nil {
		return exit.Outside(fmt.Errorf("--skip-refused: %w", err))
	}
	return nil
}

// linesFor returns the text that is to be appended to a file.
func linesFor(name string, file *os.File, lines []refusedLine) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, exit.Outside(fmt.Errorf("--skip-refused: %w", err))
	}
	var text []byte
	last, header := []byte{'\n'}, lines[0].header
	if size := info.Size(); size > 0 {
		if _, err := file.ReadAt(last, size-1); err != nil {
			return nil, exit.Outside(fmt.Errorf("--skip-refused: %w", err))
		}
		if last[0] != '\n' {
			text = append(text, '\n')
		}
		first := make([]byte, len(header))
		if _, err := file.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) ||
			!bytes.Equal(first, header) {
			return nil, exit.Usage("--skip-refused %s: it has not the header %q: name another file",
				name, header)
		}
	} else if header != nil {
		text = append(append(text, header...), '\n')
	}
	for _, line := range lines {
		if !bytes.Equal(line.header, header) {
			return nil, exit.Usage("--skip-refused %s: %s has another header than %s: the lines "+
				"do not fit into one file; put the files one by one, each with a state of its own",
				name, line.where, lines[0].where)
		}
		text = append(append(text, line.data...), '\n')
	}
	return text, nil
}
