package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// bare is the upper limit for durable conditional updates: a server that does only the work that no
// durable server can omit. It reads calls, writes their bodies to a file, many with one sync, and
// sends prepared answers. It handles only the HTTP of the clients here, has no items, and does not
// parse bodies.
//
// Like all servers here it is a separate process: this program, with bareVariable in its
// environment.
type bare struct {
	file    *os.File
	off     int64
	calls   chan bareCall
	answers map[string][]byte // by target
}

// bareCall waits for its sync.
type bareCall struct {
	body   []byte
	synced chan<- error
}

const (
	bareVariable = "RUNNEL_BENCH_BARE" // its address; its folder is the argument
	bareFile     = 64 << 20            // the file's size in bytes; writes start over at its end
)

func bareServer() *server {
	return &server{
		name: bareName, groups: []group{groupUpdates}, target: listTables, bare: true,
		command: func(ctx context.Context, port int, dir string) *exec.Cmd {
			self, err := os.Executable()
			if err != nil {
				self = os.Args[0]
			}
			c := exec.CommandContext(ctx, self, dir)
			c.Env = append(os.Environ(), bareVariable+"="+process.Address(port))
			return c
		},
	}
}

// serveBare serves until the process is killed. It first writes the whole file once: a later sync
// then has no blocks to convert (see server/internal/wal/ahead.go).
func serveBare(ctx context.Context, address, dir string) error {
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(make([]byte, bareFile), 0); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	b := &bare{file: file, calls: make(chan bareCall, mostInFlight), answers: bareAnswers()}
	go b.commit()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		go func() {
			_ = b.serve(conn)
			_ = conn.Close()
		}()
	}
}

func bareAnswers() map[string][]byte {
	const active = `{"TableStatus":"ACTIVE"}`
	answers := map[string][]byte{}
	for operation, body := range map[string]string{
		"ListTables": "{}", "PutItem": "{}", "UpdateItem": "{}",
		"CreateTable":   `{"TableDescription":` + active + `}`,
		"DescribeTable": `{"Table":` + active + `}`,
	} {
		answers["DynamoDB_20120810."+operation] = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\n"+
			"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
	}
	return answers
}

// commit writes and syncs the waiting calls in batches, and wakes each call after its sync.
func (b *bare) commit() {
	var batch []bareCall
	var frames []byte
	for call := range b.calls {
		batch, frames = append(batch[:0], call), append(frames[:0], call.body...)
		for range len(b.calls) {
			call := <-b.calls
			batch, frames = append(batch, call), append(frames, call.body...)
		}
		if b.off+int64(len(frames)) > bareFile {
			b.off = 0
		}
		_, err := b.file.WriteAt(frames, b.off)
		if err == nil {
			err = syncData(b.file)
		}
		b.off += int64(len(frames))
		for _, call := range batch {
			call.synced <- err
		}
		runtime.Gosched() // as runnel's log does
	}
}

// serve answers a connection's calls.
func (b *bare) serve(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, kib*inFlight)
	synced := make(chan error, 1)
	for {
		target, size, err := bareHead(in)
		if err != nil {
			return err
		}
		answer, ok := b.answers[target]
		if !ok {
			return fmt.Errorf("no answer to %q is ready", target)
		}
		body, err := in.Peek(size)
		if err != nil {
			return err
		}
		b.calls <- bareCall{body, synced}
		if err := <-synced; err != nil {
			return err
		}
		if _, err := conn.Write(answer); err != nil {
			return err
		}
		if _, err := in.Discard(size); err != nil {
			return err
		}
	}
}

// bareHead reads a request's head.
func bareHead(in *bufio.Reader) (target string, size int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		switch {
		case string(name) == "X-Amz-Target":
			target = string(value)
		case string(name) == "Content-Length":
			if size, err = strconv.Atoi(string(value)); err != nil {
				return "", 0, err
			}
		case !ok && len(name) == 0:
			return target, size, nil
		}
	}
}
