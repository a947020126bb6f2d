package input

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
)

// Bytes counts the bytes read and the total of the b. It is safe for concurrent use.
type Bytes struct {
	read  atomic.Int64
	total int64 // 0: not known
}

// Measure adds up the files' sizes. A file that is not a regular one leaves the total unknown.
func (b *Bytes) Measure(names []string) {
	b.read.Store(0)
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
	bytes *Bytes
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.read.Add(int64(n))
	return n, err
}

// Bar shows the part of the input that was read. Some of these records may still be waiting.
func (b *Bytes) Bar(took time.Duration) string {
	read := b.read.Load()
	speed := fmt.Sprintf("%s/s", console.MiB(console.Rate(read, took)))
	if b.total == 0 {
		return fmt.Sprintf("read %s, %s", console.MiB(read), speed)
	}
	left := ""
	if read > 0 && read < b.total && took > time.Second {
		rest := time.Duration(float64(took) / float64(read) * float64(b.total-read))
		left = fmt.Sprintf(", %s left", rest.Round(time.Second))
	}
	return fmt.Sprintf("%s %3d %% of %s, %s%s", console.Bar(read, b.total, 30),
		100*read/b.total, console.MiB(b.total), speed, left)
}
