package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// The exit statuses of every command.
const (
	exitOK          = 0
	exitNo          = 1   // the answer is no: a failed verdict, a violation found
	exitUsage       = 2   // wrong usage or bad input; nothing was changed
	exitOutside     = 3   // something outside failed; it is safe to run it again
	exitInterrupted = 130 // interrupted before it was finished
)

// statusError is an error with its exit status. With quiet, the command has printed the reason
// already.
type statusError struct {
	status int
	quiet  bool
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &statusError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

func outsideError(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status: exitOutside, err: err}
}

// answerNo returns the error for status 1, after the command has printed the reason.
func answerNo(reason string) error {
	return &statusError{status: exitNo, quiet: true, err: errors.New(reason)}
}

var (
	errStop      = errors.New("asked to stop")
	errInterrupt = &statusError{
		status: exitInterrupted,
		err:    errors.New("interrupted before it was finished; it is safe to run it again"),
	}
)

// output is standard output. Its errors are *outputError.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

// outputError says that a command could not write its result. The command may have changed
// something before, so its status is not that of wrong usage.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// statusOf returns the exit status for a command's error. An error without a status of its own
// counts as wrong usage, since the errors of cobra are about the command line.
func statusOf(err error) int {
	var known *statusError
	var unwritten *outputError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &unwritten):
		return exitOutside
	case errors.As(err, &known):
		return known.status
	case errors.Is(err, context.Canceled), errors.Is(err, errStop):
		return exitInterrupted
	default:
		return exitUsage
	}
}
