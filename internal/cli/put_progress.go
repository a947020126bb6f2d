package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/producer"
)

// inputBytes counts the bytes read and the total of the input. It is safe for concurrent use.
type inputBytes struct {
	read  atomic.Int64
	total int64 // 0: not known
}

// measure adds up the files' sizes. A file that is not a regular one leaves the total unknown.
func (b *inputBytes) measure(names []string) {
	b.total = 0
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			b.total = 0
			return
		}
		b.total += info.Size()
	}
}

// counting returns a reader that counts the bytes read from r.
type counting struct {
	io.Reader
	bytes *inputBytes
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.read.Add(int64(n))
	return n, err
}

// watchPut shows how a put gets on: with a bar on a terminal, by a line now and then elsewhere.
func (a *app) watchPut(ctx context.Context, p *producer.Producer, input *inputBytes) (stop func()) {
	start := time.Now()
	_, screen := console.Terminal(a.Err)
	return a.WatchLines(ctx, func() []string {
		stats, took := p.Stats(), time.Since(start)
		if screen {
			return []string{putBar(input, took), putLine(stats, took)}
		}
		return []string{putLine(stats, took)}
	})
}

// putBar shows the part of the input that was read. Some of these records may still be waiting.
func putBar(input *inputBytes, took time.Duration) string {
	read := input.read.Load()
	speed := fmt.Sprintf("%s/s", console.MiB(console.Rate(read, took)))
	if input.total == 0 {
		return fmt.Sprintf("read %s, %s", console.MiB(read), speed)
	}
	left := ""
	if read > 0 && read < input.total && took > time.Second {
		rest := time.Duration(float64(took) / float64(read) * float64(input.total-read))
		left = fmt.Sprintf(", %s left", rest.Round(time.Second))
	}
	return fmt.Sprintf("%s %3d %% of %s, %s%s", console.Bar(read, input.total, 30),
		100*read/input.total, console.MiB(input.total), speed, left)
}

func putLine(s producer.Stats, took time.Duration) string {
	return fmt.Sprintf("put %s records, %s/s, %s calls, %d waiting, the oldest %.1f s, "+
		"%d retried, %d unknown", console.Thousands(s.Delivered), console.Thousands(console.Rate(s.Delivered, took)),
		console.Thousands(s.Calls), s.Buffered, s.OldestAge.Seconds(), s.Retried, s.Unknown)
}
