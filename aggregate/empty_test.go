package aggregate_test

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// An empty aggregate opens, has no user record, belongs to every shard, and leaves a filter's
// state unchanged.
func TestEmpty(t *testing.T) {
	data := aggregate.Empty()
	var d aggregate.Decoder
	if !aggregate.IsAggregate(data) || len(data) <= aggregate.Overhead || !d.Open(data) || d.Len() != 0 {
		t.Fatalf("%q", data)
	}
	if err := d.Check(keyspace.Range{}); err != nil {
		t.Error(err)
	}
	var f aggregate.Filter
	for sub := range f.Pass(&d, time.UnixMilli(1)) {
		t.Errorf("user record %d", sub)
	}
	if f.Counts != (aggregate.Counts{}) {
		t.Errorf("%+v", f.Counts)
	}
}
