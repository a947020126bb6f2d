package consumer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// stated starts a fleet of one shard, delivers units 1 to n of one producer, and stops its worker.
// It returns the positions of their records.
func (f *fleet) stated(j *journal, n int) []runnel.Position {
	f.Helper()
	m := f.start("w1", j.into)
	var want []string
	for i := range n {
		f.stream.put(unit(1, uint64(i+1), "a", fmt.Sprint(i+1)), "a")
		want = append(want, fmt.Sprint(i+1))
	}
	f.expect(j, strings.Join(want, " "))
	f.mustStop(m)
	var at []runnel.Position
	for _, r := range f.stream.shards[0].records {
		at = append(at, runnel.Position{Sequence: runnel.SequenceNumber(*r.SequenceNumber)})
	}
	if l := f.leases()[0]; l.StateAt != l.Checkpoint || len(l.State) == 0 {
		f.Fatalf("the row is %+v: want the state at the checkpoint", l)
	}
	return at
}

// move moves a row's checkpoint, as a program that keeps no state does.
func (f *fleet) move(to runnel.Position) {
	f.edit(f.stream.shards[0].id, "SET #a = :a", "checkpoint",
		&types.AttributeValueMemberS{Value: string(to.Sequence)})
}

// rebuilt returns how many records were read again.
func (f *fleet) rebuilt() int {
	n := 0
	for _, e := range f.happened(consumer.EventRebuilt) {
		n += e.Records
	}
	return n
}

// The state is passed with the lease: the next worker drops doubles, and reads nothing again.
func TestStateIsPassed(t *testing.T) {
	for _, kill := range []bool{false, true} {
		bubble(t, 1, func(f *fleet) {
			var j journal
			m := f.start("w1", j.into)
			f.stream.put(unit(1, 1, "a", "1"), "a")
			f.stream.put("x", "a")
			f.expect(&j, "1 x")
			<-time.After(failover) // checkpoints
			if kill {
				m.kill()
			} else {
				m.stop()
			}
			<-m.err
			f.start("w2", j.into)
			f.stream.put(unit(1, 1, "a", "1"), "a")
			f.stream.put(unit(1, 2, "a", "2"), "a")
			f.expect(&j, "1 x 2")
			f.readAgain()
		})
	}
}

// A program that keeps no state has moved the checkpoint on. The state is brought up to it by
// reading the records in between, and no others.
func TestStateIsBroughtUp(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		f.stated(&j, 3)
		// The other program delivers units 4 and 5.
		f.stream.put(unit(1, 4, "a", "4"), "a")
		f.stream.put(unit(1, 5, "a", "5"), "a")
		records := f.stream.shards[0].records
		f.move(runnel.Position{Sequence: runnel.SequenceNumber(*records[4].SequenceNumber)})
		f.start("w2", j.into)
		f.stream.put("plain", "a")
		f.expect(&j, "1 2 3 plain")
		f.readAgain()
		for n := range 6 { // a double of each, and a new one
			f.stream.put(unit(1, uint64(n+1), "a", fmt.Sprint(n+1)), "a")
		}
		f.expect(&j, "1 2 3 plain 6")
		// Units 4 and 5, and the record before the first unit.
		if n := f.rebuilt(); n != 3 {
			t.Errorf("%d records were read again, want 3", n)
		}
	})
}

// A checkpoint was moved back, before the state. The state is void: units that come again are
// delivered again, and their doubles are not.
func TestStateBeyondTheCheckpoint(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		at := f.stated(&j, 4)
		f.move(at[1])
		f.start("w2", j.into)
		f.stream.put(unit(1, 3, "a", "3"), "a")
		f.stream.put(unit(1, 5, "a", "5"), "a")
		f.expect(&j, "1 2 3 4 3 4 5")
	})
}

// A state that cannot be read is reported, and the filter is made from the stream.
func TestUnreadableState(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		f.stated(&j, 2)
		f.edit(f.stream.shards[0].id, "SET #a = :a", "runnelState",
			&types.AttributeValueMemberB{Value: []byte{99, 1, 2}})
		f.start("w2", j.into)
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.stream.put(unit(1, 3, "a", "3"), "a")
		f.expect(&j, "1 2 3")
		if failed := f.happened(consumer.EventFailed); len(failed) != 1 {
			t.Errorf("reported %+v", failed)
		}
	})
}

// No record of a stream without units is read twice, whoever takes its shards over.
func TestPlainStreamIsReadOnce(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.stream.put("a", keys(50)...)
		m := f.start("w1")
		f.await(failover, "50 records", func() bool { n, _ := f.delivered(); return n == 50 })
		f.mustStop(m)
		iterators := f.countIterators()
		f.start("w2")
		f.stream.put("b", keys(50)...)
		f.await(failover, "100 records", func() bool { n, _ := f.delivered(); return n == 100 })
		f.readAgain()
		for shard, n := range iterators() {
			if n != 1 {
				t.Errorf("the reading of %s was begun %d times", shard, n)
			}
		}
	})
}
