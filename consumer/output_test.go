package consumer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// output is a place of results with the workers that fill it.
type output struct {
	name    string
	workers []*member
	records map[runnel.SequenceNumber]int
}

// startOutput starts n workers of an output.
func (f *fleet) startOutput(name string, n int) *output {
	f.Helper()
	o := &output{name: name, records: map[runnel.SequenceNumber]int{}}
	for i := range n {
		m := f.start(name+string(rune('1'+i)), func(c *consumer.Config) {
			c.Output = name
			c.Handler = func(_ context.Context, b *consumer.Batch) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, r := range b.Records {
					o.records[r.Position.Sequence]++
				}
				return nil
			}
		})
		o.workers = append(o.workers, m)
	}
	return o
}

func (f *fleet) outputHas(o *output) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(o.records)
}

// refused checks that every worker of an output ended with an error that names both outputs.
func (f *fleet) refused(o *output, have string) {
	f.Helper()
	for _, m := range o.workers {
		other := new(lease.OutputError)
		if err := <-m.err; !errors.Is(err, lease.ErrOtherOutput) || !errors.As(err, &other) ||
			other.Have != have || other.Want != o.name {
			f.Errorf("a worker of %s, beside %s, ended with %v", o.name, have, err)
		}
	}
}

// Workers with two outputs begin at the same moment, three of each, in the middle of splits. One
// output gets all records, and the other none. It does not matter whether the rows are there.
func TestOneOutput(t *testing.T) {
	won := map[string]int{}
	for seed := range uint64(40 * soak()) {
		bubble(t, 2, func(f *fleet) {
			c := &chaos{random: rand.New(rand.NewPCG(seed, 5))}
			f.table.Before = func(context.Context, string, string) error {
				<-time.After(time.Duration(c.pick(300)) * time.Millisecond)
				return nil
			}
			if seed%2 == 1 { // as a Java application, or an older version, leaves a new table
				for _, s := range f.stream.shards {
					f.putRow(f.javaRow(s, "TRIM_HORIZON"))
				}
			}
			f.stream.put("a", keys(40)...)
			a, b := f.startOutput("table a", 3), f.startOutput("table b", 3)
			for range 3 {
				<-time.After(time.Duration(c.pick(3000)) * time.Millisecond)
				f.stream.split(0)
				f.stream.put("a", keys(40)...)
			}
			f.await(9*failover, "all records", func() bool {
				return f.outputHas(a)+f.outputHas(b) == 160
			})
			if f.outputHas(a) == 0 {
				a, b = b, a
			}
			if n, others := f.outputHas(a), f.outputHas(b); others != 0 {
				f.Fatalf("seed %d: %s has %d records, and %s %d", seed, a.name, n, b.name, others)
			}
			won[a.name]++
			f.refused(b, a.name)
			late := f.startOutput("table c", 1)
			f.refused(late, a.name)
			for _, l := range f.leases() {
				if l.Output != a.name && !l.Ended() {
					f.Errorf("seed %d: %s has the output %q", seed, l.Key, l.Output)
				}
			}
		})
	}
	if len(won) < 2 {
		t.Errorf("the same output won every time: %v", won)
	}
}

// A worker that finds a row with another output while it runs takes no further lease, and ends.
func TestOtherOutputLater(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		a := f.startOutput("table a", 1)
		f.await(3*failover, "both leases", func() bool { return f.loads()["table a1"] == 2 })
		l := f.leases()[0]
		_, err := f.table.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("orders-app"), Key: row{"leaseKey": text(string(l.Key))},
			ConditionExpression: aws.String("attribute_exists(#o)"),
			UpdateExpression:    aws.String("SET #o = :o, #w = :w, #c = :c"),
			ExpressionAttributeNames: map[string]string{
				"#o": "runnelOutput", "#w": "leaseOwner", "#c": "leaseCounter",
			},
			ExpressionAttributeValues: row{
				":o": text("table b"), ":w": text("other"), ":c": number(l.Counter + 7),
			},
		})
		if err != nil {
			f.Fatal(err)
		}
		f.refused(a, "table b")
	})
}
