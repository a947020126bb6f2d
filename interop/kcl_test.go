package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// fleetTime is what two JVMs need to start, to share a stream and to notice a death, on a
// machine that is busy beside it.
const fleetTime = 5 * time.Minute

// TestKCL runs the Java KCL on `runnel serve` alone, which is its Kinesis, its DynamoDB and its
// CloudWatch: two workers, shards that split and merge, and a worker that is killed. Every
// record must be delivered, each key's in order, and the leases be as the KCL leaves them.
func TestKCL(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the KCL and runs this")
	}
	p := serve(t)
	t.Run("versions", func(t *testing.T) { // returns when the parallel ones have ended
		for _, c := range []struct{ version, retrieval string }{
			{"3.5.1", "fanout"},
			{"2.7.2", "polling"},
		} {
			t.Run(c.version+" "+c.retrieval, func(t *testing.T) {
				t.Parallel()
				newFleet(t, p, c.version, c.retrieval).story()
			})
		}
	})
}

// fleet is a stream, and the KCL's workers on it.
type fleet struct {
	traveller

	p                  *process
	version, retrieval string
	app                string
	items              *dynamodb.Client
	read               *delivered
	put                int // records of each key so far
}

func newFleet(t *testing.T, p *process, version, retrieval string) *fleet {
	ctx, cancel := context.WithTimeout(t.Context(), fleetTime)
	t.Cleanup(cancel)
	keys := credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, "")
	f := &fleet{
		p: p, version: version, retrieval: retrieval, app: "kcl-" + version,
		read: newDelivered(),
		items: dynamodb.New(dynamodb.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://" + p.addr), Credentials: keys,
		}),
	}
	f.traveller = traveller{
		t: t, ctx: ctx, stream: aws.String("kcl-" + version), client: kinesis.New(kinesis.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://" + p.addr), Credentials: keys,
		}),
	}
	return f
}

// story is what happens to the fleet. The first worker becomes the leader of a KCL 3, whose lock
// takes minutes to expire: so the second one is killed.
func (f *fleet) story() {
	_, err := f.client.CreateStream(f.ctx, &kinesis.CreateStreamInput{
		StreamName: f.stream, ShardCount: aws.Int32(2),
	})
	f.must(err)
	f.active()
	first := f.startWorker("first")
	f.putBatch()
	f.until("the first worker has read all", f.readAll)
	second := f.startWorker("second")
	f.until("the second worker holds a shard", second.holds)

	f.putBatch()
	shards := f.shards()
	_, err = f.client.SplitShard(f.ctx, &kinesis.SplitShardInput{
		StreamName: f.stream, ShardToSplit: shards[0].ShardId,
		NewStartingHashKey: aws.String("9" + (*shards[0].HashKeyRange.EndingHashKey)[2:]),
	})
	f.must(err)
	f.active()
	f.putBatch()
	second.kill()
	f.putBatch()
	_, err = f.client.MergeShards(f.ctx, &kinesis.MergeShardsInput{
		StreamName: f.stream, ShardToMerge: f.shards()[3].ShardId,
		AdjacentShardToMerge: shards[1].ShardId,
	})
	f.must(err)
	f.active()
	f.putBatch()
	f.until("every record has been read", f.readAll)
	f.until("the leases are as the shards", f.leasesFit)
	first.stop()
	for _, fault := range f.read.disorder() {
		f.t.Error(fault)
	}
}

const fleetKeys = 50

// putBatch puts one more record of every key.
func (f *fleet) putBatch() {
	f.put++
	for key := range fleetKeys {
		_, err := f.client.PutRecord(f.ctx, &kinesis.PutRecordInput{
			StreamName: f.stream, PartitionKey: aws.String(fmt.Sprintf("key-%d", key)),
			Data: []byte(strconv.Itoa(f.put)),
		})
		f.must(err)
	}
}

func (f *fleet) readAll() (bool, string) {
	got, want := f.read.count(), fleetKeys*f.put
	return got == want, fmt.Sprintf("%d of %d records", got, want)
}

// until waits for something; what says how far it is.
func (f *fleet) until(what string, done func() (ok bool, state string)) {
	f.t.Helper()
	for {
		ok, state := done()
		if ok {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-f.ctx.Done():
			f.t.Fatalf("KCL %s: not in time: %s: %s", f.version, what, state)
		}
	}
}

// leasesFit looks at the lease table: a lease of every open shard with a checkpoint in it, and of
// the closed ones those whose end is checkpointed, as far as the KCL has not removed them yet.
func (f *fleet) leasesFit() (bool, string) {
	out, err := f.items.Scan(f.ctx, &dynamodb.ScanInput{
		TableName: &f.app, ConsistentRead: aws.Bool(true),
	})
	f.must(err)
	checkpoints := map[string]string{}
	for _, item := range out.Items {
		key, _ := item["leaseKey"].(*dynamotypes.AttributeValueMemberS)
		checkpoint, _ := item["checkpoint"].(*dynamotypes.AttributeValueMemberS)
		if key != nil && checkpoint != nil && strings.HasPrefix(key.Value, "shardId-") {
			checkpoints[key.Value] = checkpoint.Value
		}
	}
	for _, shard := range f.shards() {
		checkpoint, there := checkpoints[*shard.ShardId]
		closed := shard.SequenceNumberRange.EndingSequenceNumber != nil
		if (closed && there && checkpoint != "SHARD_END") ||
			(!closed && (!there || checkpoint == "SHARD_END")) {
			return false, fmt.Sprintf("%s, closed %v: checkpoint %q", *shard.ShardId, closed,
				checkpoint)
		}
	}
	return true, ""
}

// startWorker starts a JVM with one worker.
func (f *fleet) startWorker(name string) *worker {
	dir, err := filepath.Abs("../.tools/interop/kcl/" + f.version)
	f.must(err)
	return startWorker(f.t, f.read, name, f.p.environment("http", ""),
		"java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"),
		"Worker", *f.stream, f.app, name, f.retrieval)
}
