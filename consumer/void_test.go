package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
)

// void puts an aggregate of two lanes into the shard of the first, where the second's records
// do not belong, between two ordinary records.
func (f *fleet) void() (a, b string) {
	a, b = f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
	f.stream.put("before", a)
	f.stream.put(pack(1, part{number: 1, low: 1, key: a, data: []string{"a1", "a2"}},
		part{number: 2, low: 1, key: b, data: []string{"b1"}}), a)
	f.stream.put("behind", a)
	return a, b
}

func policy(p consumer.VoidPolicy) func(*consumer.Config) {
	return func(c *consumer.Config) { c.Void = p }
}

// A void aggregate is dropped or delivered, and reported; the filter does not know its units, so
// that they come when they are sent again under the same numbers.
func TestVoid(t *testing.T) {
	for p, want := range map[consumer.VoidPolicy]string{
		consumer.VoidAuto:    "before behind a1 a2 b1",
		consumer.VoidDrop:    "before behind a1 a2 b1",
		consumer.VoidDeliver: "before a1 a2 b1 behind a1 a2 b1",
	} {
		bubble(t, 2, func(f *fleet) {
			var j journal
			m := f.start("w1", j.into, policy(p))
			a, b := f.void()
			<-time.After(time.Second)
			for range 2 { // the second time, as doubles
				f.stream.put(pack(1, part{1, 1, a, []string{"a1", "a2"}}), a)
				<-time.After(time.Second)
				f.stream.put(pack(1, part{2, 1, b, []string{"b1"}}), b)
				<-time.After(time.Second)
			}
			f.expect(&j, want)
			voided := f.happened(consumer.EventVoided)
			dropped := 3
			if p == consumer.VoidDeliver {
				dropped = 0
			}
			if len(voided) != 1 || voided[0].Records != 3 || voided[0].Dropped != dropped || voided[0].Position.Sub != 2 ||
				!errors.Is(voided[0].Err, aggregate.ErrOutsideShard) {
				t.Fatalf("voided: %+v", voided)
			}
			if doubles, _ := f.dropped(); doubles != 3 {
				t.Errorf("%d doubles", doubles)
			}
			// If a successor reads it again, the filter ignores it as well.
			f.mustStop(m)
			f.stream.put(pack(1, part{3, 3, a, []string{"a3"}}), a)
			f.start("w2", j.into, policy(p))
			f.expect(&j, want+" a3")
		})
	}
}

// A successor that reads a void aggregate again counts none of its units as delivered.
func TestVoidReadAgain(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		a, b := f.void()
		f.expect(&j, "before behind")
		f.mustStop(m)
		f.start("w2", j.into)
		f.stream.put(pack(1, part{1, 1, a, []string{"a1", "a2"}}), a)
		<-time.After(time.Second)
		f.stream.put(pack(1, part{2, 1, b, []string{"b1"}}), b)
		f.expect(&j, "before behind a1 a2 b1")
	})
}

// With VoidStop the records before the aggregate are delivered and checkpointed, and none behind
// it, until a worker with another policy takes over.
func TestVoidStop(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into, policy(consumer.VoidStop))
		f.void()
		before := f.stream.last(0, 0)
		<-time.After(time.Minute)
		f.expect(&j, "before")
		var void *consumer.VoidError
		failed := f.happened(consumer.EventFailed)
		if len(failed) < 5 || !errors.As(failed[0].Err, &void) {
			t.Fatalf("failed: %+v", failed)
		}
		if void.Records != 3 || void.Delivered+void.Dropped != 0 || void.ShardID != f.stream.shards[0].id ||
			void.Position.Sequence.Compare(before.Sequence) >= 0 {
			t.Errorf("got %+v", void)
		}
		f.mustStop(m)
		f.start("w2", j.into)
		f.expect(&j, "before behind")
	})
}

// Records that are dropped are work done: Once ends behind them, and a worker beside another
// one sees by its checkpoint that nothing is left.
func TestOnceEndsBehindWhatIsDropped(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var j journal
		a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
		f.stream.put(unit(1, 1, a, "1"), a, a, a)
		f.stream.put(pack(2, part{1, 1, a, []string{"x"}}, part{2, 1, b, []string{"y"}}), a)
		f.start("goes on", j.into)
		f.expect(&j, "1")
		began := time.Now()
		m := f.start("once", j.into, once)
		if err := <-m.err; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > failover {
			t.Errorf("took %s", took)
		}
	})
}
