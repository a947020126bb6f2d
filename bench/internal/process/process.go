// Package process runs the clients and servers that benchmarks measure: separate processes, whose
// processor time and memory are read from Linux's /proc.
package process

import (
	"bufio"
	"bytes"
	"encoding/json"
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

// Process is a client, in a process group of its own.
type Process struct {
	command *exec.Cmd
	orders  io.WriteCloser
	lines   *bufio.Scanner
	said    bytes.Buffer // the standard error, read only after the process has ended
}

// Begin starts a client with the environment of the SDKs. The caller ends it.
func Begin(command *exec.Cmd) (*Process, error) {
	p := &Process{command: command}
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

// Order writes a line to the client's standard input.
func (p *Process) Order(line string) error {
	if _, err := io.WriteString(p.orders, line+"\n"); err != nil {
		return p.Fault(err)
	}
	return nil
}

// Wait reads up to the line that begins with word and decodes the rest of this line into result.
func (p *Process) Wait(word string, result any) error {
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
	return p.Fault(fmt.Errorf("it ended before it was %s", word))
}

// Fault ends the process and adds its output to the error.
func (p *Process) Fault(err error) error {
	p.End()
	said := strings.TrimSpace(p.said.String())
	return fmt.Errorf("%w; it said: %s", err, said[max(0, len(said)-1000):])
}

// End kills the group.
func (p *Process) End() {
	if p.command.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have ended already
	_ = p.command.Wait()
}

// ticks is Linux's unit of processor time in /proc: 1/100 s on all its machines.
const ticks = 10 * time.Millisecond

// CPU returns the processor time of the group's processes.
func (p *Process) CPU() (sum time.Duration) {
	p.each(func(_ string, stat []string) { sum += processorTime(stat) })
	return sum
}

// processorTime returns the time in the fields of a process' stat behind its name.
func processorTime(stat []string) (sum time.Duration) {
	for _, field := range stat[11:13] { // utime and stime
		n, _ := strconv.Atoi(field)
		sum += time.Duration(n) * ticks
	}
	return sum
}

// Memory returns the sum of the peak memory of the group's processes, in MB.
func (p *Process) Memory() (sum float64) {
	p.each(func(dir string, _ []string) {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		sum += status(pid, "VmHWM")
	})
	return sum
}

// status returns a figure of a process' status, in MB.
func status(pid int, name string) float64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	_, rest, _ := strings.Cut(string(text), name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(fields[0], 64)
	return n * 1024 / 1e6
}

// each calls f for every process of the group, with its folder in /proc and the fields of its stat
// behind the name.
func (p *Process) each(f func(dir string, stat []string)) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended meanwhile
		}
		stat := statFields(text)
		if len(stat) > 13 && stat[2] == strconv.Itoa(p.command.Process.Pid) {
			f(filepath.Dir(name), stat)
		}
	}
}

// statFields returns the fields of a process' stat behind its name.
func statFields(text []byte) []string {
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}
