package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// dropTable answers every call as DynamoDB does when the table was deleted.
func (f *fleet) dropTable() *atomic.Bool {
	gone := &atomic.Bool{}
	f.table.Before = func(context.Context, string, string) error {
		if !gone.Load() {
			return nil
		}
		return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found")}
	}
	return gone
}

// A lease table that is deleted ends its workers, which report that once and flush their sinks.
func TestDeletedTable(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		var log lockedText
		gone := f.dropTable()
		s := newChain(&chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true}, 1000)
		m := f.start("w1", intoSink(s), func(c *consumer.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		<-time.After(failover)
		puts := len(f.stream.put("a", keys(40)...))
		<-time.After(time.Second)
		gone.Store(true)
		began := time.Now()
		err := <-m.err
		if !errors.Is(err, lease.ErrTableNotFound) || !strings.Contains(err.Error(), "was deleted while") {
			t.Errorf("got %v, want lease.ErrTableNotFound", err)
		}
		if took := time.Since(began); took > 2*failover {
			t.Errorf("it took %s", took)
		}
		if s.count() != puts {
			t.Errorf("%d of %d records were flushed", s.count(), puts)
		}
		if log.String() != "" {
			t.Errorf("logged beside the error: %s", &log)
		}
	})
}

// A table that is missing for a moment, such as that of a server that is being restored, ends no
// worker.
func TestTableThatComesBack(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var calls atomic.Int64
		f.table.Before = func(_ context.Context, op, _ string) error {
			if n := calls.Add(1); op != "DescribeTable" && n > 40 && n < 45 {
				return &types.ResourceNotFoundException{}
			}
			return nil
		}
		f.start("w1")
		<-time.After(5 * failover)
		f.stream.put("a", keys(20)...)
		f.await(failover, "20 records", func() bool { n, _ := f.delivered(); return n == 20 })
		if calls.Load() < 45 {
			t.Error("the table was never missing")
		}
	})
}

// spoil puts a row for the shard that no program known to the worker would write.
func (f *fleet) spoil(shard string) {
	f.Helper()
	err := f.leaseTable().Ensure(f.Context())
	if err == nil {
		_, err = f.table.PutItem(f.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("orders-app"), Item: map[string]types.AttributeValue{
				"leaseKey":   &types.AttributeValueMemberS{Value: shard},
				"checkpoint": &types.AttributeValueMemberS{Value: "of another program"},
			},
			ConditionExpression:      aws.String("attribute_not_exists(#k)"),
			ExpressionAttributeNames: map[string]string{"#k": "leaseKey"},
		})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// A row that cannot be read is left alone, and reported once; the others are read.
func TestUnreadableRow(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		var log lockedText
		bad := f.stream.shards[1]
		f.spoil(string(bad.id))
		f.stream.put("a", keys(80)...)
		f.start("w1", func(c *consumer.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.AuditInterval = 10 * time.Second
		})
		others := 80 - len(bad.records)
		f.await(failover, "the other shards", func() bool {
			n, _ := f.delivered()
			return n == others
		})
		f.stream.split(0)
		f.stream.split(2) // the bad one: its children wait
		f.stream.put("b", keys(80)...)
		waiting := len(bad.records)
		for _, sh := range f.stream.shards {
			if slices.Contains(sh.parents, bad.id) {
				waiting += len(sh.records)
			}
		}
		<-time.After(2 * time.Minute)
		if n, _ := f.delivered(); n != 160-waiting || waiting == len(bad.records) {
			t.Errorf("%d records, want %d", n, 160-waiting)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 ||
			!strings.Contains(log.String(), string(bad.id)) {
			t.Errorf("logged %d lines: %s", n, &log)
		}
		out, err := f.table.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String("orders-app"), Key: map[string]types.AttributeValue{
				"leaseKey": &types.AttributeValueMemberS{Value: string(bad.id)},
			},
		})
		if err != nil || len(out.Item) != 2 {
			t.Errorf("the row is %v, %v", out.Item, err)
		}
	})
}

// A child of a shard with an unreadable row waits, quietly. So does a child of a merge that has one
// such parent.
func TestUnreadableParent(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var log lockedText
		bad := f.stream.shards[0]
		f.spoil(string(bad.id))
		f.stream.put("a", keys(40)...)
		f.start("w1", func(c *consumer.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		f.await(failover, "the other shard", func() bool {
			n, _ := f.delivered()
			return n == 40-len(bad.records)
		})
		f.stream.merge(0)
		f.stream.put("b", keys(20)...)
		<-time.After(5 * time.Minute)
		if n, _ := f.delivered(); n != 40-len(bad.records) {
			t.Errorf("%d records: the child overtook its parent", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("logged %d lines: %s", n, &log)
		}
	})
}

// A worker with Config.Once names the rows that it has left out.
func TestOnceWithAnUnreadableRow(t *testing.T) {
	bubble(t, 3, func(f *fleet) {
		f.stream.put("a", keys(30)...)
		f.stream.merge(0) // of 0 and 1
		bad := f.stream.shards[0]
		f.spoil(string(bad.id))
		m := f.start("w1", once)
		err := <-m.err
		if !errors.Is(err, lease.ErrUnreadableRow) || !strings.Contains(err.Error(), string(bad.id)) {
			t.Errorf("got %v, want lease.ErrUnreadableRow and %s", err, bad.id)
		}
		if n, _ := f.delivered(); n != 30-len(bad.records) {
			t.Errorf("%d records, want %d", n, 30-len(bad.records))
		}
	})
}

// lockedText is a log that several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An owner that is NULL or empty, as a person or another program writes it, is none: the lease is
// taken.
func TestOwnerThatIsNone(t *testing.T) {
	for _, owner := range []types.AttributeValue{
		&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberS{},
	} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put("a", keys(10)...)
			m := f.start("w1")
			f.await(failover, "the records", func() bool {
				n, _ := f.delivered()
				return n == 10
			})
			f.mustStop(m)
			f.edit(f.stream.shards[0].id, "SET #a = :a", "leaseOwner", owner)
			f.stream.put("a", keys(5)...)
			m = f.start("w2", once)
			select {
			case err := <-m.err:
				if n, _ := f.delivered(); err != nil || n != 15 {
					f.Errorf("%d records, %v", n, err)
				}
			case <-time.After(5 * time.Minute):
				f.Error("the worker waits for a lease that it can never take")
				f.mustStop(m)
			}
		})
	}
}

// edit changes an attribute of a row, as a person would.
func (f *fleet) edit(
	shard runnel.ShardID, expression, attribute string, value types.AttributeValue,
) {
	f.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String("orders-app"), Key: map[string]types.AttributeValue{
			"leaseKey": &types.AttributeValueMemberS{Value: string(shard)},
		},
		ConditionExpression:      aws.String("attribute_exists(#k)"),
		UpdateExpression:         aws.String(expression),
		ExpressionAttributeNames: map[string]string{"#k": "leaseKey", "#a": attribute},
	}
	if value != nil {
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":a": value}
	}
	if _, err := f.table.UpdateItem(f.Context(), in); err != nil {
		f.Fatal(err)
	}
}

// A held row is deleted under its worker. The worker says so, and the shard is read from a new row
// soon.
func TestHeldRowIsDeleted(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var log lockedText
		f.start("w1", func(c *consumer.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		f.stream.put("a", keys(10)...)
		f.await(failover, "the records", func() bool { n, _ := f.delivered(); return n == 10 })
		<-time.After(failover)
		for _, l := range f.leases() {
			if l.Key == f.stream.shards[0].id {
				if err := f.leaseTable().Delete(f.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.await(failover, "a new row", func() bool { return f.loads()["w1"] == 2 })
		f.stream.put("b", keys(10)...)
		f.await(failover, "the new records", func() bool { n, _ := f.delivered(); return n == 20 })
		if !strings.Contains(log.String(), "was deleted") ||
			!strings.Contains(log.String(), string(f.stream.shards[0].id)) {
			t.Errorf("logged: %s", &log)
		}
	})
}

// The children of a shard that splits before the time at which the application begins also begin at
// that time.
func TestFromFutureTime(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		at := time.Now().Add(time.Minute)
		f.start("w1", func(c *consumer.Config) { c.From = runnel.FromTime(at) })
		f.stream.put("early", keys(4)...)
		<-time.After(10 * time.Second)
		f.stream.split(0)
		<-time.After(10 * time.Second)
		f.stream.put("early", keys(4)...)
		<-time.After(2 * time.Minute)
		if n, _ := f.delivered(); n != 0 {
			t.Errorf("%d records of before the time", n)
		}
		f.mustStop(f.workers["w1"])
	})
}

// A held row is edited so that it cannot be read. The worker loses that shard alone, and says so.
func TestHeldRowIsSpoiled(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		w := f.start("w1")
		f.await(failover, "four leases", func() bool { return f.loads()["w1"] == 4 })
		<-time.After(failover)
		bad := f.stream.shards[2].id
		f.edit(bad, "SET #a = :a", "leaseCounter", &types.AttributeValueMemberS{Value: "x"})
		<-time.After(2 * failover)
		for i := range 4 {
			f.stream.put("a", f.stream.keysOf(i, 5)...)
		}
		f.await(failover, "the records of the other shards", func() bool {
			n, _ := f.delivered()
			return n == 15
		})
		if len(w.err) > 0 {
			t.Errorf("the worker ended with %v", <-w.err)
		}
		reported := 0
		for _, e := range f.happened(consumer.EventFailed) {
			if e.ShardID == bad && errors.Is(e.Err, lease.ErrUnreadableRow) {
				reported++
			}
		}
		if reported == 0 {
			t.Error("the row was not reported")
		}
	})
}
