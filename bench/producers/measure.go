package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// done is a client's last line of output.
type done struct {
	Records int     `json:"records"` // acknowledged
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"` // from the first put to the last acknowledgement
}

// figures has the measurements of one client.
type figures struct {
	done
	calls  int
	cpu    time.Duration // of the client's processes
	memory float64       // the sum of the processes' peaks, in MB
}

// measure runs one client against a new server.
func measure(
	ctx context.Context, cfg Config, in input, limits string, w way,
) (got figures, err error) {
	s, err := serve(ctx, cfg, limits)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	t := task{server: s, file: in.file, passes: cfg.Passes, most: cfg.Most, limits: limits}
	p, err := begin(w.command(ctx, t))
	if err != nil {
		return got, err
	}
	defer p.end()
	if err := p.wait("ready", nil); err != nil {
		return got, err
	}
	calls, err := s.calls(ctx)
	if err != nil {
		return got, err
	}
	cpu := p.cpu()
	if _, err := io.WriteString(p.orders, "go\n"); err != nil {
		return got, p.fault(err)
	}
	if err := p.wait("done", &got.done); err != nil {
		return got, err
	}
	got.cpu, got.memory = p.cpu()-cpu, p.memory()
	after, err := s.calls(ctx)
	got.calls = after - calls
	switch {
	case err != nil:
		return got, err
	case got.Failed > 0 || got.Records == 0:
		return got, fmt.Errorf("%d records put, %d failed", got.Records, got.Failed)
	}
	return got, nil
}

// process is a client, in a process group of its own.
type process struct {
	command *exec.Cmd
	orders  io.WriteCloser
	lines   *bufio.Scanner
	said    bytes.Buffer // the standard error, read only after the process has ended
}

func begin(command *exec.Cmd) (*process, error) {
	p := &process{command: command}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Stderr = &p.said
	command.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any",
		"AWS_SECRET_ACCESS_KEY=any", "AWS_EC2_METADATA_DISABLED=true")
	var err error
	if p.orders, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	return p, command.Start()
}

// wait reads up to the line that begins with word and decodes the rest of this line into result.
func (p *process) wait(word string, result any) error {
	for p.lines.Scan() {
		first, rest, _ := strings.Cut(p.lines.Text(), " ")
		if first != word {
			continue
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal([]byte(rest), result)
	}
	return p.fault(fmt.Errorf("it ended before it was %s", word))
}

// fault ends the process and adds its output to the error.
func (p *process) fault(err error) error {
	p.end()
	said := strings.TrimSpace(p.said.String())
	return fmt.Errorf("%w; it said: %s", err, said[max(0, len(said)-1000):])
}

// end kills the group.
func (p *process) end() {
	if p.command.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have ended already
	_ = p.command.Wait()
}

// ticks is Linux's unit of processor time in /proc: 1/100 s on all its machines.
const ticks = 10 * time.Millisecond

// cpu returns the processor time of the group's processes.
func (p *process) cpu() (sum time.Duration) {
	p.each(func(_ string, stat []string) {
		for _, field := range stat[11:13] { // utime and stime, counted from behind the name
			n, _ := strconv.Atoi(field)
			sum += time.Duration(n) * ticks
		}
	})
	return sum
}

// memory returns the sum of the peak memory of the group's processes, in MB.
func (p *process) memory() (sum float64) {
	p.each(func(dir string, _ []string) {
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			n, _ := strconv.ParseFloat(fields[0], 64)
			sum += n * 1024 / 1e6
		}
	})
	return sum
}

// each calls f for every process of the group, with its folder in /proc and the fields of its stat
// behind the name.
func (p *process) each(f func(dir string, stat []string)) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended meanwhile
		}
		stat := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(stat) > 13 && stat[2] == strconv.Itoa(p.command.Process.Pid) {
			f(filepath.Dir(name), stat)
		}
	}
}
