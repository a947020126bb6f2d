package main

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

const startTime = time.Minute // the longest time from a server's start to its first answer

// process is a running server.
type process struct {
	command  *exec.Cmd
	endpoint string
	started  time.Duration // the time from its start to its first answer
	dir      string
	said     *tail
}

// start runs a server on an empty folder and waits for its first answer. The caller ends it.
func start(ctx context.Context, cfg Config, s *server) (*process, error) {
	dir, err := os.MkdirTemp(cfg.Dir, "runnel-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &process{
		command: s.command(ctx, port, dir), endpoint: "http://" + address(port), dir: dir,
		said: &tail{},
	}
	p.command.Stdout, p.command.Stderr = p.said, p.said
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := p.answers(ctx, s.target); err != nil {
		err = errors.Join(err, p.end())
		return nil, fmt.Errorf("%w; it said: %s", err, p.said)
	}
	p.started = time.Since(begin)
	return p, nil
}

// answers calls the operation until the server answers.
func (p *process) answers(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	w := newWire(p.endpoint)
	defer w.close()
	for {
		err := w.call(ctx, target, []byte("{}"), nil)
		if err == nil {
			return nil
		}
		if paused := pause(ctx, time.Millisecond); paused != nil {
			return fmt.Errorf("no answer to %s: %w", target, err)
		}
	}
}

// resident returns the process's resident memory in MB. Without /proc the error is
// errors.ErrUnsupported.
func (p *process) resident() (float64, error) {
	name := fmt.Sprintf("/proc/%d/status", p.command.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("%s has no VmRSS", name)
	}
	kilobytes, err := strconv.ParseFloat(fields[0], 64)
	return kilobytes * 1024 / 1e6, err
}

// end kills the process, waits for it, and removes its folder.
func (p *process) end() error {
	err := p.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = p.command.Wait() // a killed process ends with an error
	return errors.Join(err, os.RemoveAll(p.dir))
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address(0))
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// pause waits for d. It returns the cause if the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tail keeps the end of a process's output for an error message. A goroutine of exec.Cmd writes;
// others read only after the process has ended.
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
