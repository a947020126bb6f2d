package sinktest_test

import (
	"context"
	"os"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// folder is a sinktest.Target: archives in one folder.
type folder struct{ dir string }

func (f folder) NewSink() (sink.Sink, error) { return archive.New(archive.Config{Dir: f.dir}) }

func (f folder) Records(ctx context.Context, shard sink.Shard) ([]runnel.Record, error) {
	reader, err := archive.Open(f.dir)
	if err != nil {
		return nil, err
	}
	chain := archive.Chain{
		Stream:  archive.Stream{Name: shard.Stream, Created: shard.Created.UTC()},
		ShardID: shard.ID,
	}
	var records []runnel.Record
	for record, err := range reader.Records(ctx, chain) {
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// A test of a sink: does it hold each record's effect exactly once, in order?
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMySink(t *testing.T)
		sinktest.Run(t, func(t *testing.T) sinktest.Target { return folder{t.TempDir()} })
	}
}

// Simulate runs readers and writers of one stream against a sink. The seed decides everything.
func ExampleSimulate() {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_, err = sinktest.Simulate(context.Background(), folder{dir}, sinktest.Plan{Seed: 7, Calm: true})
	if err != nil {
		panic(err)
	}
	// Output:
}
