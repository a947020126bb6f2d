package demo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/sink/archive"
)

// verdict is the output of the demo. All but the last five fields come from the archive.
type verdict struct {
	OK         bool  `json:"ok"`
	Produced   int64 `json:"produced"`
	Keys       int64 `json:"keys"`
	Archived   int64 `json:"archived"`
	Duplicates int64 `json:"duplicates"`
	Missing    int64 `json:"missing"`
	OutOfOrder int64 `json:"outOfOrder"` // records
	Shards     int   `json:"shards"`

	Takeovers  int64   `json:"takeovers"`
	Suppressed int64   `json:"suppressed"` // read more than once, archived once
	PutSeconds float64 `json:"putSeconds"`
	Seconds    float64 `json:"seconds"`
	PerSecond  int64   `json:"perSecond"` // end to end

	putTook time.Duration
}

// verdict reads the archive back and compares it with the events.
func (d *demo) verify(ctx context.Context) error {
	took := time.Since(d.started)
	inSource, inArchive := newIdentity(), newIdentity()
	report, err := archive.Verify(ctx, filepath.Join(d.dir, "archive"), archive.VerifyOptions{
		Records: d.sourceRecords(ctx, inSource), Ordered: true,
		Identify: func(record *runnel.Record) (string, bool) {
			return inArchive.of(record.PartitionKey, record.Data), true
		},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.ErrInterrupt
	case errors.Is(err, archive.ErrUnusableSource):
		return exit.Usage("%w", err)
	case err != nil:
		return exit.Outside(err)
	}
	v := verdict{
		Produced: report.Source.Records, Keys: report.Source.Keys, Archived: report.Records,
		// A record that is in the archive more often than in the source has no counterpart.
		Duplicates: report.Source.Unknown.Count + report.Source.Doubled.Count + report.Twice.Count,
		Missing:    report.Source.Missing.Count, OutOfOrder: report.Source.OutOfOrder.Count,
		Shards: report.Shards, Takeovers: d.fleet.takeovers.Load(),
		Suppressed: max(0, d.fleet.delivered.Load()-report.Records),
		putTook:    d.putTook, PutSeconds: d.putTook.Seconds(), Seconds: took.Seconds(),
		PerSecond: console.Rate(report.Records, took),
	}
	v.OK = report.OK() && v.Duplicates == 0 && v.Archived == v.Produced
	if err := rows.Print(d.con.Out, d.con.JSON(), v); err != nil {
		return err
	}
	if !v.OK {
		_ = report.WriteText(d.con.Err)
		return exit.No("the archive differs from the records that were produced")
	}
	return nil
}

func (d *demo) sourceRecords(
	ctx context.Context, ids *identity,
) iter.Seq2[archive.SourceRecord, error] {
	return func(yield func(archive.SourceRecord, error) bool) {
		for e, err := range d.events.read(ctx) {
			record := archive.SourceRecord{ID: ids.of(e.key, e.data), Key: e.key}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// identity names a record by its content and the number of equal records before it, so that a
// file may hold equal lines.
type identity struct{ seen map[[16]byte]int }

func newIdentity() *identity { return &identity{seen: map[[16]byte]int{}} }

func (i *identity) of(key string, data []byte) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%d %s", len(key), key)
	hash.Write(data)
	sum := [16]byte(hash.Sum(nil))
	i.seen[sum]++
	return fmt.Sprintf("%x/%d", sum, i.seen[sum])
}

// WriteText implements rows.Report.
func (v verdict) WriteText(w io.Writer) error {
	out := rows.New(w, false)
	out.Align()
	result := "ok: exactly once, in order per key"
	if !v.OK {
		result = "NOT OK"
	}
	for _, line := range []rows.Line{
		{"produced", fmt.Sprintf("%s records of %s keys in %.1f s, %s/s",
			console.Thousands(v.Produced), console.Thousands(v.Keys), v.PutSeconds,
			console.Thousands(console.Rate(v.Produced, v.putTook)))},
		{"archived", fmt.Sprintf("%s from %d shards in %.1f s, %s/s end to end",
			console.Thousands(v.Archived), v.Shards, v.Seconds, console.Thousands(v.PerSecond))},
		{"missing", console.Thousands(v.Missing)},
		{"duplicates", console.Thousands(v.Duplicates)},
		{"out of order", console.Thousands(v.OutOfOrder) + ", over all keys"},
		{"takeovers", fmt.Sprintf("%d shards of the lost worker; "+
			"%s records were read again and archived once",
			v.Takeovers, console.Thousands(v.Suppressed))},
		{"verdict", result},
	} {
		if err := out.Row(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
