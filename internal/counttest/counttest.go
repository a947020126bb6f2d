// Package counttest counts the log lines and the reads of workers in a test. In an outage workers
// must not write a line for each try, nor read the same records again and again.
package counttest

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Counts are the counts of workers. The zero value is ready for use. It is safe for concurrent use.
type Counts struct {
	Lines   atomic.Int64 // of the log
	Records atomic.Int64 // that GetRecords returned
}

// Reset begins the counts again.
func (c *Counts) Reset() {
	c.Lines.Store(0)
	c.Records.Store(0)
}

// Logger returns a logger that counts its lines, of every level, and drops them.
func (c *Counts) Logger() *slog.Logger { return slog.New(handler{c}) }

type handler struct{ to *Counts }

func (h handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h handler) WithGroup(string) slog.Handler            { return h }

func (h handler) Handle(context.Context, slog.Record) error {
	h.to.Lines.Add(1)
	return nil
}

// Reader is a client of Kinesis that counts the records of its reads.
type Reader struct {
	*kinesis.Client
	to *Counts
}

// Reader returns a Reader with these counts.
func (c *Counts) Reader(client *kinesis.Client) Reader { return Reader{client, c} }

// GetRecords replaces the client's.
func (r Reader) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	out, err := r.Client.GetRecords(ctx, in, options...)
	if err == nil {
		r.to.Records.Add(int64(len(out.Records)))
	}
	return out, err
}
