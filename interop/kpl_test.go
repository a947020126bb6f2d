package interop

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/runnel-stream/runnel/keyspace"
)

const (
	kplBatch = 1000 // the number of user records before the split, and again after it
	kplKeys  = 50
)

// TestKPL runs the KPL's native process over TLS, with the certificate checked; meanwhile the test
// splits a shard. runnel, its worker and a Java KCL open the aggregates. Every user record must be in the
// stream as it was put, in a shard that its hash key belongs to, and more than once only if the KPL
// sent it again.
func TestKPL(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the KPL and runs this")
	}
	t.Parallel() // beside the KCL's fleets, which mostly wait
	p := serve(t)
	f := newFleet(t, p, "3.5.1", polling)
	f.app, f.stream = "kpl", aws.String("kpl")
	_, err := f.client.CreateStream(f.ctx, &kinesis.CreateStreamInput{
		StreamName: f.stream, ShardCount: aws.Int32(4),
	})
	f.must(err)
	f.active()
	worker := f.startWorker("first")
	producer := startKPL(f)

	start := time.Now()
	put := producer.put(kplBatch)
	f.split(f.shards()[1])
	put = append(put, producer.put(kplBatch)...)
	t.Logf("the KPL took %.1f s", time.Since(start).Seconds())
	o := open(f)
	o.check(put)
	o.checkOurs(put)

	f.until("the KCL has read what it opens", func() (bool, string) {
		got := f.read.count()
		return got >= len(o.java), fmt.Sprintf("%d of %d records", got, len(o.java))
	})
	f.until("the KPL's metrics have come", producer.metricsCome(2*kplBatch))
	producer.stop()
	worker.stop()
	o.checkJava()
	report(t, "KPL", writes, row{records: len(o.sightings), again: o.again})
	report(t, "KCL 3.5.1", ofKPL, row{
		records: f.read.count(), again: f.read.repeats(),
	})
}

// split splits a shard in its middle.
func (f *fleet) split(shard types.Shard) {
	_, err := f.client.SplitShard(f.ctx, &kinesis.SplitShardInput{
		StreamName: f.stream, ShardToSplit: shard.ShardId,
		NewStartingHashKey: aws.String(f.hashKeys(shard).Middle().String()),
	})
	f.must(err)
	f.active()
}

func (f *fleet) hashKeys(shard types.Shard) keyspace.Range {
	start, err := keyspace.Parse(*shard.HashKeyRange.StartingHashKey)
	f.must(err)
	end, err := keyspace.Parse(*shard.HashKeyRange.EndingHashKey)
	f.must(err)
	return keyspace.Range{Start: start, End: end}
}
