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

	"github.com/runnel-stream/runnel/bench/internal/process"
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
			words := []string{binary, "serve", "--quiet", "--addr", process.Address(port)}
			return append(words, where...)
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

// running is a running server.
type running struct {
	*process.Program
	cpu time.Duration // the processor time of its threads until the first answer
}

// start runs a server on an empty folder and waits for its first answer. The caller ends it.
func start(ctx context.Context, s *server) (*running, error) {
	program, err := process.Start{
		Command: func(ctx context.Context, port int, dir string) *exec.Cmd {
			words := s.command(port, dir)
			return exec.CommandContext(ctx, words[0], words[1:]...)
		},
		Call: call,
		Poll: 200 * time.Microsecond,
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	r := &running{Program: program}
	if r.cpu, err = r.processorTime(); err != nil {
		return nil, errors.Join(err, r.End())
	}
	return r, nil
}

// processorTime returns the processor time of the threads. The first number of Linux's schedstat
// has it in nanoseconds, where stat counts in hundredths of a second.
func (r *running) processorTime() (sum time.Duration, err error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", r.PID))
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
func call(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
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
func (r *running) memory() (m memory, err error) {
	for field, into := range map[string]*float64{
		"VmRSS": &m.all, "RssAnon": &m.own, "RssFile": &m.file,
	} {
		if *into, err = r.Resident(field); err != nil {
			return m, err
		}
	}
	return m, nil
}
