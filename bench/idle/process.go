package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a server to measure, with its figures: one of each for a round.
type server struct {
	name    string
	command func(port int, dir string) []string

	started []float64 // ms from the start to the first answer
	cpu     []float64 // ms of processor time meanwhile
	memory  []memory
}

// memory is the resident memory of a process in MB.
type memory struct {
	all  float64
	own  float64 // anonymous pages: the heap, the stacks and what the runtime needs for itself
	file float64 // pages of the binary
}

// servers returns the servers to measure, in the table's order.
func servers(cfg Config) []*server {
	var all []*server
	for _, binary := range cfg.Runnel {
		of := ""
		if len(cfg.Runnel) > 1 {
			of = " (" + binary + ")"
		}
		serve := func(port int, where ...string) []string {
			return append([]string{binary, "serve", "--quiet", "--addr", address(port)}, where...)
		}
		all = append(all,
			&server{name: "runnel --memory" + of, command: func(port int, _ string) []string {
				return serve(port, "--memory")
			}},
			&server{name: "runnel --data" + of, command: func(port int, dir string) []string {
				return serve(port, "--data", dir)
			}})
	}
	if _, err := os.Stat(cfg.Ferrokinesis); err == nil {
		all = append(all, &server{name: "ferrokinesis", command: func(port int, _ string) []string {
			return []string{cfg.Ferrokinesis, "--port", fmt.Sprint(port)}
		}})
	}
	return all
}

// process is a running server.
type process struct {
	command  *exec.Cmd
	dir      string
	took     time.Duration // from its start to its first answer
	cpu      time.Duration // the processor time of its threads meanwhile
	answered time.Time
}

const (
	startTime = time.Minute            // the longest time from a start to the first answer
	pollTime  = 200 * time.Microsecond // from a call in vain to the next one
)

// start runs a server on an empty folder and waits for its first answer. The caller ends it.
func start(ctx context.Context, s *server) (*process, error) {
	dir, err := os.MkdirTemp("", "runnel-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	words := s.command(port, dir)
	p := &process{dir: dir, command: exec.CommandContext(ctx, words[0], words[1:]...)}
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for err = call(ctx, port); err != nil; err = call(ctx, port) {
		if ended := pause(ctx, pollTime); ended != nil {
			return nil, errors.Join(fmt.Errorf("no answer: %w", err), p.end())
		}
	}
	p.answered = time.Now()
	p.took = p.answered.Sub(begin)
	if p.cpu, err = p.processorTime(); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// processorTime returns the processor time of the threads. The first number of Linux's schedstat
// has it in nanoseconds, where stat counts in hundredths of a second.
func (p *process) processorTime() (sum time.Duration, err error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		ran, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}

// request is a call of ListStreams. Some servers require a signature, which none of them checks.
const request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n" +
	"Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\n" +
	"X-Amz-Date: %[1]sT000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=bench/%[1]s/" +
	"us-east-1/kinesis/aws4_request, SignedHeaders=host, Signature=00\r\n\r\n{}"

// call makes one call over a connection of its own.
func call(ctx context.Context, port int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := fmt.Fprintf(conn, request, time.Now().UTC().Format("20060102")); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// memory reads the process' memory from Linux's /proc.
func (p *process) memory() (m memory, err error) {
	name := fmt.Sprintf("/proc/%d/status", p.command.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return m, err
	}
	for field, into := range map[string]*float64{
		"VmRSS": &m.all, "RssAnon": &m.own, "RssFile": &m.file,
	} {
		_, rest, _ := strings.Cut(string(text), field+":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			return m, fmt.Errorf("%s has no %s", name, field)
		}
		kilobytes, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			return m, err
		}
		*into = kilobytes * 1024 / 1e6
	}
	return m, nil
}

// end kills the process, waits for it, and removes its folder.
func (p *process) end() error {
	_ = p.command.Process.Kill() // it may have ended already
	_ = p.command.Wait()         // a killed process ends with an error
	return os.RemoveAll(p.dir)
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address(0))
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
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
