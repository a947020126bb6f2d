package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// StartTime is the longest time from a program's start to its first answer.
const StartTime = time.Minute

// Program is a server of any make, on a port of its own and on a folder that was empty.
type Program struct {
	PID      int
	Address  string        // HOST:PORT
	Took     time.Duration // from its start to its first answer
	Answered time.Time     // when the first answer came

	command *exec.Cmd
	dir     string
	said    *tail
}

// Start describes how a program is started.
type Start struct {
	Parent  string // of its folder; "" for the system's folder of temporary files
	Command func(ctx context.Context, port int, dir string) *exec.Cmd
	// Call makes one call. The program has started once it returns nil.
	Call func(ctx context.Context, address string) error
	Poll time.Duration // from a call in vain to the next one
}

// Run starts a program and waits for its first answer. The caller ends it.
func (s Start) Run(ctx context.Context) (*Program, error) {
	dir, err := os.MkdirTemp(s.Parent, "runnel-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &Program{
		Address: Address(port), command: s.Command(ctx, port, dir), dir: dir, said: &tail{},
	}
	p.command.Stdout, p.command.Stderr = p.said, p.said
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.PID = p.command.Process.Pid
	limited, cancel := context.WithTimeout(ctx, StartTime)
	defer cancel()
	for err = s.Call(limited, p.Address); err != nil; err = s.Call(limited, p.Address) {
		if Pause(limited, s.Poll) != nil {
			err = errors.Join(fmt.Errorf("no answer: %w", err), p.End())
			return nil, fmt.Errorf("%w; it said: %s", err, p.said)
		}
	}
	p.Answered = time.Now()
	p.Took = p.Answered.Sub(begin)
	return p, nil
}

// Resident returns a figure of the program's memory in MB, as VmRSS, from Linux's /proc. Elsewhere
// the error is errors.ErrUnsupported.
func (p *Program) Resident(name string) (float64, error) {
	file := fmt.Sprintf("/proc/%d/status", p.PID)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("%s has no %s", file, name)
	}
	kilobytes, err := strconv.ParseFloat(fields[0], 64)
	return kilobytes * 1024 / 1e6, err
}

// End kills the program, waits for it, and removes its folder.
func (p *Program) End() error {
	err := p.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = p.command.Wait() // a killed process ends with an error
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Address returns HOST:PORT of a port of this machine.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", Address(0))
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// Pause waits for d. It returns the cause if the context ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tail keeps the end of a program's output for an error message. A goroutine of exec.Cmd writes;
// others read only after the program has ended.
type tail struct{ kept []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - most; over > 0 {
		t.kept = bytes.Clone(t.kept[over:])
	}
	return len(p), nil
}

// String returns the kept output.
func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }
