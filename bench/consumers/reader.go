package main

import (
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
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/bench/internal/process"
	"github.com/runnel-stream/runnel/consumer"
)

// asReader is the first argument of this program as a reader.
const asReader = "reader"

// reader is one kind of reader.
type reader struct {
	name    string
	java    bool
	command func(ctx context.Context, server *process.Server, app string, total int) *exec.Cmd
}

const (
	nameOwn  = "runnel"
	nameKCL2 = "Java KCL 2.7.2"
	nameKCL3 = "Java KCL 3.5.1"
)

// readers returns the readers. It compiles those in Java into a folder that remove removes.
func readers(ctx context.Context, cfg Config) (all []reader, remove func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "runnel-bench-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	all = []reader{{name: nameOwn, command: func(
		ctx context.Context, server *process.Server, app string, total int,
	) *exec.Cmd {
		return exec.CommandContext(ctx, self, asReader, "http://"+server.Address, app,
			strconv.Itoa(total))
	}}}
	for _, name := range []string{nameKCL2, nameKCL3} {
		version := name[strings.LastIndexByte(name, ' ')+1:]
		libraries := filepath.Join(cfg.Tools, "interop", "kcl", version, "lib", "*")
		classes := filepath.Join(dir, version)
		said, err := exec.CommandContext(ctx, "javac", "-cp", libraries, "-d", classes,
			filepath.Join("bench", "consumers", "Read.java")).CombinedOutput()
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("javac: %w: %s", err, said), remove())
		}
		all = append(all, reader{name, true, func(
			ctx context.Context, server *process.Server, app string, total int,
		) *exec.Cmd {
			return exec.CommandContext(ctx, "java", "-Xmx1g",
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
				"-cp", classes+string(filepath.ListSeparator)+libraries, "Read",
				"http://"+server.Address, stream, app, strconv.Itoa(total))
		}})
	}
	return all, remove, nil
}

// mark is a line of a reader's output: "warm" or "done", and this.
type mark struct {
	Records int `json:"records"` // handled so far
}

// read is the main function of the reader with package consumer. Its arguments are ENDPOINT APP
// TOTAL.
func read(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("a reader is started by the benchmark itself")
	}
	total, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	sdk, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	sdk.BaseEndpoint = aws.String(args[0])
	c := &counter{total: total, out: out}
	worker, err := consumer.New(consumer.Config{
		Stream: stream, App: args[1], From: runnel.FromOldest(),
		Kinesis: kinesis.NewFromConfig(sdk), DynamoDB: dynamodb.NewFromConfig(sdk),
		Handler: func(_ context.Context, b *consumer.Batch) error { return c.add(b.Records) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // the parent reads the figures before it closes the input
	}()
	if err := worker.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// counter counts the records of all shards.
type counter struct {
	total int
	out   io.Writer

	mu      sync.Mutex
	records int
	bytes   int
	warm    bool
}

func (c *counter) add(records []runnel.Record) error {
	bytes := 0
	for i := range records {
		bytes += len(records[i].Data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records += len(records)
	c.bytes += bytes
	switch {
	case !c.warm && c.records >= c.total/10:
		c.warm = true
		return c.say("warm")
	case c.records >= c.total && c.records-len(records) < c.total:
		return c.say("done")
	}
	return nil
}

func (c *counter) say(word string) error {
	text, err := json.Marshal(mark{c.records})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s %s\n", word, text)
	return err
}

// figures has the measurements of one reader.
type figures struct {
	records int           // behind the first tenth
	cpu     time.Duration // for these
	wall    time.Duration // for these
	memory  float64       // the peak, in MB
}

// measure runs one reader.
func (r reader) measure(
	ctx context.Context, server *process.Server, app string, l load,
) (got figures, err error) {
	p, err := process.Begin(r.command(ctx, server, app, l.total()))
	if err != nil {
		return got, err
	}
	defer p.End()
	var warm, done mark
	if err := p.Wait("warm", &warm); err != nil {
		return got, err
	}
	start, cpu := time.Now(), p.CPU()
	if err := p.Wait("done", &done); err != nil {
		return got, err
	}
	got.wall, got.cpu, got.memory = time.Since(start), p.CPU()-cpu, p.Memory()
	// The KCL may have got a few records twice: it moves leases while it starts.
	if got.records = done.Records - warm.Records; done.Records != l.total() && !r.java {
		return got, fmt.Errorf("it has read %d records of %d", done.Records, l.total())
	}
	return got, nil
}
