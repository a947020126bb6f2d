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

// fleetTime bounds the time of two JVMs to start, to share a stream and to notice a death, on a
// busy machine.
const fleetTime = 5 * time.Minute

// fleets are the cases of TestKCL. The cases of one row run side by side, the rows one after the
// other. `make interop` runs the first row, `make interop-all` all.
var fleets = [][]struct{ version, retrieval string }{
	{{"3.5.1", fanOut}, {"2.7.2", polling}},
	{{"3.5.1", polling}, {"2.7.2", fanOut}},
}

// TestKCL runs two workers of the Java KCL with `runnel serve` as their Kinesis, DynamoDB and
// CloudWatch. Shards split and merge, and one worker is killed. Every record must be delivered,
// those of a key in order, and the lease table must agree with the shards.
func TestKCL(t *testing.T) {
	switch os.Getenv("RUNNEL_INTEROP") {
	case "":
		t.Skip("make interop installs the KCL and runs this")
	case "all":
	default:
		fleets = fleets[:1]
	}
	t.Parallel()
	p := serve(t)
	for _, sideBySide := range fleets {
		t.Run("fleets", func(t *testing.T) { // returns when the parallel ones have ended
			for _, c := range sideBySide {
				t.Run(c.version+" "+c.retrieval, func(t *testing.T) {
					t.Parallel()
					newFleet(t, p, c.version, c.retrieval).story()
				})
			}
		})
	}
}

// fleet is a stream with its KCL workers.
type fleet struct {
	goJourney

	p                  *process
	version, retrieval string
	app                string
	items              *dynamodb.Client
	read               *delivered
	put                int // the number of records of each key so far
}

func newFleet(t *testing.T, p *process, version, retrieval string) *fleet {
	return newFleetWithin(t, p, version, retrieval, fleetTime)
}

func newFleetWithin(
	t *testing.T, p *process, version, retrieval string, limit time.Duration,
) *fleet {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	keys := credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, "")
	f := &fleet{
		p: p, version: version, retrieval: retrieval, app: "kcl-" + version + "-" + retrieval,
		read: newDelivered(),
		items: dynamodb.New(dynamodb.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://" + p.addr), Credentials: keys,
		}),
	}
	f.goJourney = goJourney{
		t: t, ctx: ctx, stream: aws.String(f.app), client: kinesis.New(kinesis.Options{
			Region: "eu-west-1", BaseEndpoint: aws.String("http://" + p.addr), Credentials: keys,
		}),
	}
	return f
}

// story runs the steps of the test. The first worker becomes the leader of a KCL 3, and the
// leader's lock takes minutes to expire. So the second worker is killed.
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
	f.until("the second worker holds a shard", f.puttingUntil(second.holds))

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
	killed := time.Now()
	f.putBatch()
	_, err = f.client.MergeShards(f.ctx, &kinesis.MergeShardsInput{
		StreamName: f.stream, ShardToMerge: f.shards()[3].ShardId,
		AdjacentShardToMerge: shards[1].ShardId,
	})
	f.must(err)
	f.active()
	f.putBatch()
	f.until("every record has been read", f.readAll)
	recovery := time.Since(killed)
	f.until("the leases are as the shards", f.leasesFit)
	first.stop()
	for _, fault := range f.read.disorder() {
		f.t.Error(fault)
	}
	report(f.t, "KCL "+f.version, f.retrieval, row{
		records: f.read.count(), again: f.read.repeats(), recovery: recovery,
	})
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

// puttingUntil puts a batch a second until the condition holds. The leader of a KCL 3 shares shards
// by throughput, and moves none while no records flow.
func (f *fleet) puttingUntil(done func() (bool, string)) func() (bool, string) {
	next := time.Now().Add(time.Second)
	return func() (bool, string) {
		if now := time.Now(); now.After(next) {
			f.putBatch()
			next = now.Add(time.Second)
		}
		return done()
	}
}

// until waits until done reports true. Its messages name the condition by the first argument.
func (f *fleet) until(what string, done func() (ok bool, state string)) {
	f.t.Helper()
	start := time.Now()
	for {
		ok, state := done()
		if ok {
			f.t.Logf("%s, after %.1f s: %s", what, time.Since(start).Seconds(), state)
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-f.ctx.Done():
			f.t.Fatalf("KCL %s: not in time: %s: %s", f.version, what, state)
		}
	}
}

// leasesFit checks the lease table. Every open shard must have a lease with a checkpoint in the
// shard. A closed shard may have a lease until the KCL removes it; its checkpoint must be the end.
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
	return f.startKCL(f.version, name)
}

// startKCL starts a JVM with a KCL of a version. more are further arguments of the Java program: the
// protocol of a KCL 3, by default its own, and the last record to read.
func (f *fleet) startKCL(version, name string, more ...string) *worker {
	dir, err := filepath.Abs("../.tools/interop/kcl/" + version)
	f.must(err)
	return startWorker(f.t, f.read.kclLine, name, f.p.environment("http", ""), append([]string{
		"java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		filepath.Join(dir, "lib", "*") + ":" + filepath.Join(dir, "classes"),
		"Worker", *f.stream, f.app, name, f.retrieval,
	}, more...)...)
}
