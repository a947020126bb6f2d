package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// The exit statuses of every command.
const (
	StatusOK          = 0
	StatusNo          = 1   // the answer is no: a failed verdict, a violation found
	StatusUsage       = 2   // wrong usage or bad input; nothing was changed
	StatusOutside     = 3   // something outside failed; it is safe to run it again
	StatusInterrupted = 130 // interrupted before it was finished
)

// Error is an error with its exit status. With Quiet, the command has printed the reason already.
type Error struct {
	Status int
	Quiet  bool
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its status.
func (e *Error) Unwrap() error { return e.Err }

// Usage returns an error for wrong usage or bad input.
func Usage(format string, args ...any) error {
	return &Error{Status: StatusUsage, Err: fmt.Errorf(format, args...)}
}

// Outside gives an error the status of a failure outside the program; nil stays nil.
func Outside(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Status: StatusOutside, Err: err}
}

// No returns the error for status 1, after the command has printed the reason.
func No(reason string) error {
	return &Error{Status: StatusNo, Quiet: true, Err: errors.New(reason)}
}

// Interrupted returns an error for work that a signal has cut short.
func Interrupted(format string, args ...any) error {
	return &Error{Status: StatusInterrupted, Err: fmt.Errorf(format, args...)}
}

var (
	// ErrStop is the cause of a context that a signal has ended.
	ErrStop = errors.New("asked to stop")
	// ErrInterrupt is the error of a command that was interrupted and has changed nothing.
	ErrInterrupt error = &Error{
		Status: StatusInterrupted,
		Err:    errors.New("interrupted before it was finished; it is safe to run it again"),
	}
)

// Output is standard output. Status recognises its errors, also when they are wrapped.
type Output struct{ io.Writer }

func (o Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

// outputError reports that a command could not write its result. The command may have changed
// something before, so its status is not that of wrong usage.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// Status returns the exit status for a command's error.
func Status(err error) int {
	var known *Error
	var unwritten *outputError
	switch {
	case err == nil:
		return StatusOK
	case errors.As(err, &unwritten):
		return StatusOutside
	case errors.As(err, &known):
		return known.Status
	case errors.Is(err, context.Canceled), errors.Is(err, ErrStop):
		return StatusInterrupted
	default:
		return StatusUsage
	}
}
