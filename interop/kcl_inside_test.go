package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
)

// These are the places of TestInsideAggregate: runnel stops behind a4, Java behind b3.
const (
	insideSize = 10 // user records of an aggregate
	ourSub     = 4
	javaSub    = 3
)

// TestInsideAggregate passes a shard from runnel to the Java KCL and back, by the lease row alone,
// in the middle of an aggregate each time. The next worker must get the user records behind the
// place, and none up to it.
func TestInsideAggregate(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the KCL and runs this")
	}
	t.Parallel()
	p := serve(t)
	for _, version := range []string{"2.7.2", "3.5.1"} {
		for _, form := range []insideForm{
			{"Record", 2, recordTo}, {"NewProcessor", 0, processTo},
		} {
			for _, units := range []bool{false, true} {
				if units == (form.name == "Record") && os.Getenv("RUNNEL_INTEROP") != "all" {
					continue
				}
				name := fmt.Sprintf("%s-%s-units-%v", version, form.name, units)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f := newFleet(t, p, version, polling)
					f.app, f.stream = "inside-"+name, aws.String("inside-"+name)
					(&inside{fleet: f, form: form, got: newDelivered()}).story(units)
				})
			}
		}
	}
}

// insideForm is a form of handlers.
type insideForm struct {
	name string
	// ahead is how many records it finishes behind an unfinished one: its checkpoint does not pass
	// that one, and they come again.
	ahead int
	into  func(c *consumer.Config, do func(context.Context, *runnel.Record) error)
}

// inside is a stream of one shard, with the records p0, a0 to a9, b0 to b9 and p1. Those of a
// are in one aggregate, and those of b in another.
type inside struct {
	*fleet
	form insideForm
	got  *delivered        // of runnel's workers
	seqs map[string]string // the sequence numbers of the aggregates
}

func (i *inside) story(units bool) {
	_, err := i.client.CreateStream(i.ctx, &kinesis.CreateStreamInput{
		StreamName: i.stream, ShardCount: aws.Int32(1),
	})
	i.must(err)
	i.active()
	i.putOne("p0", []byte("p0"))
	i.seqs = map[string]string{
		"a": i.putOne("a0", i.packed("a", 1, units)),
		"b": i.putOne("b0", i.packed("b", 2, units)),
	}
	i.putOne("p1", []byte("p1"))
	i.runTo("a", ourSub)
	i.javaTo("b", javaSub)
	i.runOn("b", javaSub)
}

func (i *inside) putOne(key string, data []byte) (sequence string) {
	out, err := i.client.PutRecord(i.ctx, &kinesis.PutRecordInput{
		StreamName: i.stream, PartitionKey: &key, Data: data,
	})
	i.must(err)
	return *out.SequenceNumber
}

// packed returns an aggregate. Each of its records has a key of its own.
func (i *inside) packed(letter string, number uint64, unit bool) []byte {
	var records []aggregate.Record
	for n := range insideSize {
		name := letter + strconv.Itoa(n)
		records = append(records, aggregate.Record{PartitionKey: name, Data: []byte(name)})
	}
	if unit {
		records[0].Tags = aggregate.Unit{
			Producer: aggregate.ProducerID{1}, Number: number, Low: 1,
		}.AppendTo(nil)
	}
	return pack(i.t, records)
}

// places are all records, in the stream's order.
func places() []string {
	all := []string{"p0"}
	for _, letter := range []string{"a", "b"} {
		for n := range insideSize {
			all = append(all, letter+strconv.Itoa(n))
		}
	}
	return append(all, "p1")
}

// between returns the records behind one place, up to another one.
func between(after, to string) map[string]map[string]bool {
	all, want := places(), map[string]map[string]bool{}
	for _, name := range all[slices.Index(all, after)+1 : slices.Index(all, to)+1] {
		want[name] = map[string]bool{name: true}
	}
	return want
}

// row returns the checkpoint in the lease row, as SEQUENCE/SUB.
func (i *inside) row() string {
	out, err := i.items.Scan(i.ctx, &dynamodb.ScanInput{
		TableName: &i.app, ConsistentRead: aws.Bool(true),
	})
	i.must(err)
	for _, item := range out.Items {
		key, _ := item["leaseKey"].(*dynamotypes.AttributeValueMemberS)
		at, _ := item["checkpoint"].(*dynamotypes.AttributeValueMemberS)
		sub, _ := item["checkpointSubSequenceNumber"].(*dynamotypes.AttributeValueMemberN)
		if key != nil && at != nil && sub != nil && strings.HasPrefix(key.Value, "shardId-") {
			return at.Value + "/" + sub.Value
		}
	}
	return ""
}

func (i *inside) worker(
	name string, once bool, do func(context.Context, *runnel.Record) error,
) *consumer.Worker {
	c := consumer.Config{
		Stream: *i.stream, App: i.app, WorkerID: name, Kinesis: i.client, DynamoDB: i.items,
		Failover: 3 * time.Second, Once: once,
	}
	i.form.into(&c, func(ctx context.Context, r *runnel.Record) error {
		if err := do(ctx, r); err != nil {
			return err
		}
		i.got.add(delivery{
			worker: name, shard: string(r.ShardID), key: r.PartitionKey, data: string(r.Data),
		})
		return nil
	})
	worker, err := consumer.New(c)
	i.must(err)
	return worker
}

// errInside is the failure of a record that is not to be finished.
var errInside = errors.New("this record is left to the next worker")

// runTo runs a worker that finishes the records up to a place, and fails on the next one. Then it
// stops, and the row must have the place.
func (i *inside) runTo(letter string, sub int) {
	i.t.Helper()
	all := places()
	place := slices.Index(all, letter+strconv.Itoa(sub))
	ctx, cancel := context.WithCancel(i.ctx)
	defer cancel()
	worker := i.worker("go-1", false, func(_ context.Context, r *runnel.Record) error {
		n := slices.Index(all, string(r.Data))
		if n <= place || n > place+1 && n <= place+1+i.form.ahead {
			return nil
		}
		return errInside
	})
	want := between("", all[place])
	maps.Copy(want, between(all[place+1], all[place+1+i.form.ahead]))
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	i.until("runnel's worker has finished its part", func() (bool, string) {
		return i.got.count() == len(want), strconv.Itoa(i.got.count())
	})
	cancel()
	if err := <-ended; err != nil {
		i.t.Errorf("the worker ended with %v", err)
	}
	i.check("go-1", i.got, want)
	if at := fmt.Sprintf("%s/%d", i.seqs[letter], sub); i.row() != at {
		i.t.Errorf("the checkpoint of runnel is %s, want %s", i.row(), at)
	}
}

// javaTo runs the KCL until it has made a checkpoint at a place and has ended.
func (i *inside) javaTo(letter string, sub int) {
	i.t.Helper()
	protocol := ""
	if strings.HasPrefix(i.version, "3") {
		protocol = phase1
	}
	place := letter + strconv.Itoa(sub)
	java := i.startKCL(i.version, "java", protocol, place)
	at := fmt.Sprintf("%s/%d", i.seqs[letter], sub)
	i.until("the KCL has made its checkpoint", func() (bool, string) {
		return i.row() == at, i.row()
	})
	java.kill()
	i.check("the KCL", i.read, between("a"+strconv.Itoa(ourSub), place))
}

// runOn runs a worker until it has handled the rest.
func (i *inside) runOn(letter string, sub int) {
	i.t.Helper()
	i.got = newDelivered()
	worker := i.worker("go-2", true, func(context.Context, *runnel.Record) error { return nil })
	i.must(worker.Run(i.ctx))
	i.check("go-2", i.got, between(letter+strconv.Itoa(sub), "p1"))
}

// check compares the records that a worker got with those that it should get, each once.
func (i *inside) check(whose string, got *delivered, want map[string]map[string]bool) {
	i.t.Helper()
	for _, key := range got.differs(want) {
		i.t.Errorf("%s: %s", whose, key)
	}
	if n := got.repeats(); n > 0 {
		i.t.Errorf("%s got %d records more than once", whose, n)
	}
}

// recordTo handles several keys at once. The records of other keys go on beside a failing one.
func recordTo(c *consumer.Config, do func(context.Context, *runnel.Record) error) {
	c.Record, c.Parallel = do, 4
}

// processTo makes a Processor that checkpoints behind each record.
func processTo(c *consumer.Config, do func(context.Context, *runnel.Record) error) {
	c.NewProcessor = func(context.Context, consumer.Shard) (consumer.Processor, error) {
		return processor(do), nil
	}
}

type processor func(context.Context, *runnel.Record) error

func (do processor) Process(
	ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
) error {
	for n := range b.Records {
		r := &b.Records[n]
		if err := do(ctx, r); err != nil {
			return err
		}
		if err := c.Checkpoint(ctx, r.Position); err != nil {
			return err
		}
	}
	return nil
}

func (processor) Stop(context.Context, consumer.StopReason, *consumer.Checkpointer) error {
	return nil
}
