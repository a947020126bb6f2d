package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// These are the server's streams: one for the measurement and one to warm up.
const (
	loadStream = "load"
	warmStream = "warm"
)

// server is a running `runnel serve`.
type server struct {
	command *exec.Cmd
	address string // HOST:PORT, TLS and plain
	dir     string
}

func (s *server) ca() string { return filepath.Join(s.dir, "tls", "ca.pem") }

var listening = regexp.MustCompile(`https?://(127\.0\.0\.1:\d+)`)

// serve starts a server on an empty folder. The caller ends it.
func serve(ctx context.Context, cfg Config, limits string) (*server, error) {
	dir, err := os.MkdirTemp("", "runnel-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	s.command = exec.CommandContext(ctx, cfg.Runnel, "serve", "--addr", "127.0.0.1:0", "--tls",
		"--data", dir, "--stream", fmt.Sprintf("%s:%d,%s:%d", loadStream, cfg.Shards, warmStream,
			cfg.Shards), "--limits", limits, "--chaos", fmt.Sprintf(
			"PutRecords:delay=%v%%100 PutRecord:delay=%[1]v%%100", cfg.Latency))
	said, err := s.command.StderrPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	lines := bufio.NewScanner(said)
	for s.address == "" && lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			s.address = match[1]
		}
	}
	if s.address == "" {
		return nil, errors.Join(errors.New("the server did not start"), lines.Err(), s.end())
	}
	go io.Copy(io.Discard, said) //nolint:errcheck // until the process has ended
	return s, nil
}

// end kills the server and removes its folder.
func (s *server) end() error {
	_ = s.command.Process.Kill() // it may have ended already
	_ = s.command.Wait()
	return os.RemoveAll(s.dir)
}

var putCalls = regexp.MustCompile(
	`(?m)^runnel_calls_total\{operation="PutRecords?",.*service="kinesis"\} (\S+)$`)

// calls returns the number of the server's PutRecord and PutRecords calls so far.
func (s *server) calls(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+s.address+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	page, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, sample := range putCalls.FindAllSubmatch(page, -1) {
		value, err := strconv.ParseFloat(string(sample[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return int(sum), nil
}
