package s3store_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/s3test"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

// putter is a store that both ways of writing use.
type putter interface {
	archive.Store
	Put(ctx context.Context, name string, data []byte) error
}

const benchLink = 4 << 20 // bytes of lines in one object

// BenchmarkChain writes the same records as an archive, and as plain uploads of the same lines: the
// ratio of the two is the cost of exactly once.
func BenchmarkChain(b *testing.B) {
	records := make([]runnel.Record, 100_000)
	size := 0
	for n := range records {
		records[n] = runnel.Record{
			PartitionKey: fmt.Sprintf("someone-%d/some-project", n%5000),
			Data: fmt.Appendf(nil, `{"id":"%d","type":"PushEvent","repo":"someone-%d/some-project",`+
				`"actor_id":%d,"ref":"refs/heads/master","head":"%040x"}`, 2489368070+n, n%5000,
				n*7919, uint64(n)*0x9e3779b97f4a7c15),
			ShardID: "shardId-000000000000",
			Position: runnel.Position{Sequence: runnel.SequenceNumber(
				fmt.Sprintf("49590338271490256608559692538361571095921575989136%06d", n))},
			ArrivalTime: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
		}
		size += len(archive.AppendRecord(nil, &records[n])) + 1
	}
	stores := map[string]func(b *testing.B) putter{
		"folder": func(b *testing.B) putter {
			store, err := archive.NewDirStore(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			return store
		},
		"s3": func(b *testing.B) putter {
			b.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKeyID)
			b.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretAccessKey)
			client, err := awsclient.S3(b.Context(),
				awsclient.S3Options{Endpoint: s3test.New(b).URL})
			if err != nil {
				b.Fatal(err)
			}
			store, err := s3store.New(s3store.Config{S3: client, Bucket: s3test.Bucket})
			if err != nil {
				b.Fatal(err)
			}
			return store
		},
	}
	ways := map[string]func(*testing.B, putter, string, []runnel.Record){
		"chain": writeChain, "plain": writePlain,
	}
	for _, place := range []string{"folder", "s3"} {
		for _, way := range []string{"plain", "chain"} {
			b.Run(place+"/"+way, func(b *testing.B) {
				store := stores[place](b)
				b.SetBytes(int64(size))
				n := 0
				for b.Loop() {
					n++
					ways[way](b, store, fmt.Sprint("run", n), records)
				}
			})
		}
	}
}

// writeChain writes the records as one shard of an archive, in batches of 500.
func writeChain(b *testing.B, store putter, run string, records []runnel.Record) {
	b.Helper()
	a, err := archive.New(archive.Config{Store: store, Size: benchLink, Every: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	w, err := a.Open(b.Context(), sink.Shard{
		Stream: run, Created: time.UnixMilli(1), ID: "shardId-000000000000",
	})
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < len(records); from += 500 {
		part := records[from : from+500]
		if _, err := w.Write(b.Context(), sink.Batch{
			Records: part, Through: part[len(part)-1].Position,
		}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// writePlain writes the same lines as compressed objects of the same size, without a chain.
func writePlain(b *testing.B, store putter, run string, records []runnel.Record) {
	b.Helper()
	var packed bytes.Buffer
	var lines []byte
	to, size, objects := gzip.NewWriter(&packed), 0, 0
	put := func() {
		_, err := to.Write(lines)
		if err == nil {
			err = to.Close()
		}
		if err == nil {
			err = store.Put(b.Context(), fmt.Sprintf("%s/%06d.ndjson.gz", run, objects),
				packed.Bytes())
		}
		if err != nil {
			b.Fatal(err)
		}
		packed.Reset()
		to.Reset(&packed)
		lines, size = lines[:0], 0
		objects++
	}
	for n := range records {
		before := len(lines)
		lines = append(archive.AppendRecord(lines, &records[n]), '\n')
		size += len(lines) - before
		if len(lines) >= 32<<10 {
			if _, err := to.Write(lines); err != nil {
				b.Fatal(err)
			}
			lines = lines[:0]
		}
		if size >= benchLink {
			put()
		}
	}
	put()
}
