package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// stateTable is a connection to DynamoDB with faults in the calls to the table of states.
type stateTable struct {
	lease.DynamoDBAPI
	before, after func(op string) error // nil for no faults
	late          func(op string) bool  // the call is done only after the next one; nil for none
	held          func()                // it
	calls         chan string
}

// withStates returns a change of a worker's configuration, and the connection that it then has.
func withStates() (*stateTable, func(*consumer.Config)) {
	s := &stateTable{calls: make(chan string, 1000)}
	return s, func(c *consumer.Config) { s.DynamoDBAPI, c.DynamoDB = c.DynamoDB, s }
}

func (s *stateTable) run(op string, table *string, call func() error) error {
	if !strings.HasSuffix(aws.ToString(table), "-RunnelState") {
		return call()
	}
	s.calls <- op
	if s.before != nil {
		if err := s.before(op); err != nil {
			return err
		}
	}
	if s.late != nil && s.late(op) {
		s.held = func() { _ = call() }
		return errCut
	}
	err := call()
	if s.held != nil {
		s.held()
	}
	if s.after != nil && err == nil {
		err = s.after(op)
	}
	return err
}

func (s *stateTable) CreateTable(
	ctx context.Context, in *dynamodb.CreateTableInput, o ...func(*dynamodb.Options),
) (out *dynamodb.CreateTableOutput, err error) {
	err = s.run("CreateTable", in.TableName, func() (err error) {
		out, err = s.DynamoDBAPI.CreateTable(ctx, in, o...)
		return err
	})
	return out, err
}

func (s *stateTable) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.PutItemOutput, err error) {
	err = s.run("PutItem", in.TableName, func() (err error) {
		ctx := context.WithoutCancel(ctx) // a late call
		out, err = s.DynamoDBAPI.PutItem(ctx, in, o...)
		return err
	})
	return out, err
}

func (s *stateTable) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.GetItemOutput, err error) {
	err = s.run("GetItem", in.TableName, func() (err error) {
		out, err = s.DynamoDBAPI.GetItem(ctx, in, o...)
		return err
	})
	return out, err
}

// made returns the calls to the table of states since the last time.
func (s *stateTable) made() []string {
	var ops []string
	for len(s.calls) > 0 {
		ops = append(ops, <-s.calls)
	}
	return ops
}

// crowd is so many producers that their state is too large for a row.
const crowd = 60

// crowded puts the n-th unit of each producer of the crowd, and adds what is delivered to want.
func (f *fleet) crowded(n int, want *[]string) {
	for p := range crowd {
		f.stream.put(unit(byte(p+1), uint64(n), "a", fmt.Sprint(p, ".", n)), "a")
		*want = append(*want, fmt.Sprint(p, ".", n))
	}
}

// settled waits until the records are delivered, and their checkpoint and state are stored.
func (f *fleet) storedApart(j *journal, want []string) {
	f.Helper()
	f.expect(j, strings.Join(want, " "))
	f.await(2*failover, "a state apart from the row", func() bool {
		leases := f.leases()
		return leases[0].StateApart() && leases[0].Processed() == f.stream.last(0, 0)
	})
}

// The first large state is stored at the first checkpoint. The row has the last small one until
// then, and points to the table afterwards.
func TestLargeStateIsStored(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		table, change := withStates()
		f.start("w1", j.into, change)
		f.stream.put(unit(99, 1, "a", "small"), "a")
		f.expect(&j, "small")
		f.await(failover, "a small state", func() bool { return len(f.leases()[0].State) > 0 })
		if ops := table.made(); len(ops) > 0 {
			f.Errorf("a small state made the calls %v to the table of states", ops)
		}
		want := []string{"small"}
		f.crowded(1, &want)
		f.storedApart(&j, want)
		l := f.leases()[0]
		state, at, err := f.leaseTable().States().Get(f.Context(), l.Key)
		if err != nil || at != l.Checkpoint || len(state) <= lease.MaxState {
			f.Errorf("the table has %d bytes at %s, %v; the row's checkpoint is %s", len(state), at,
				err, l.Checkpoint)
		}
		table.made()
		// At a checkpoint in every F/2 the table is written once in 30 s.
		for n := range 20 {
			f.stream.put(unit(1, uint64(n+2), "a", "more"), "a")
			<-time.After(3 * time.Second)
		}
		if ops := table.made(); !slices.Equal(ops, []string{"PutItem", "PutItem"}) {
			f.Errorf("in 60 s the table of states had the calls %v", ops)
		}
	})
}

// The next worker has the large state of a polite one at its checkpoint. That of a dead one is up
// to 30 s old, and is brought up to the checkpoint.
func TestLargeStateIsPassed(t *testing.T) {
	for _, kill := range []bool{false, true} {
		bubble(t, 1, func(f *fleet) {
			var j journal
			var want []string
			m := f.start("w1", j.into)
			f.crowded(1, &want)
			f.storedApart(&j, want)
			for p := range 4 {
				f.stream.put(unit(byte(p+1), 2, "a", "2"), "a")
				want = append(want, "2")
			}
			f.expect(&j, strings.Join(want, " "))
			<-time.After(failover / 2) // checkpoints
			if kill {
				m.kill()
			} else {
				m.stop()
			}
			<-m.err
			f.start("w2", j.into)
			for p := range crowd {
				f.stream.put(unit(byte(p+1), 1, "a", "double"), "a")
			}
			for p := range 4 {
				f.stream.put(unit(byte(p+1), 2, "a", "double"), "a")
			}
			f.stream.put("end", "a")
			f.expect(&j, strings.Join(append(want, "end"), " "))
			// Brought up: the four records, and the one at which the stored state's age is read.
			if n := f.rebuilt(); !kill && n != 0 || kill && (n < 4 || n > 5) {
				f.Errorf("killed %v: %d records were read again", kill, n)
			}
		})
	}
}

// The children of a shard begin with the large state at its end, also at a worker that has never
// read the parent.
func TestLargeStateAtAnEnd(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		var want []string
		one := func(c *consumer.Config) { c.MaxLeases = 1 }
		m := f.start("w1", j.into, one)
		f.crowded(1, &want)
		f.expect(&j, strings.Join(want, " "))
		f.stream.split(0)
		f.await(2*failover, "the parent's end", func() bool {
			return len(f.happened(consumer.EventShardEnded)) == 1
		})
		m.kill()
		<-m.err
		f.start("w2", j.into)
		for p := range crowd {
			f.stream.put(unit(byte(p+1), 1, "a", "double"), "a")
		}
		f.stream.put("end", f.stream.keysOf(0, 1)[0])
		f.stream.put("end", f.stream.keysOf(1, 1)[0])
		f.expect(&j, strings.Join(append(want, "end", "end"), " "))
		f.readAgain()
		parent := f.stream.shards[0].id
		if _, at, err := f.leaseTable().States().Get(f.Context(), parent); at != runnel.End() {
			f.Errorf("the state at the parent's end is at %s, %v", at, err)
		}
		f.stream.mu.Lock()
		f.stream.shards[0].unlisted = true
		f.stream.mu.Unlock()
		f.await(time.Hour, "the parent's lease is deleted", func() bool {
			return f.leases()[0].Key != parent
		})
		state, _, err := f.leaseTable().States().Get(f.Context(), parent)
		if err != nil || state != nil {
			f.Errorf("the state of a deleted lease has %d bytes, %v", len(state), err)
		}
	})
}

// A role that may not use the table of states is reported once, and each next worker reads the
// stream again.
func TestStatesAreRefused(t *testing.T) {
	for _, op := range []string{"CreateTable", "PutItem"} {
		bubble(t, 1, func(f *fleet) {
			var j journal
			var want []string
			var logged bytes.Buffer
			table, change := withStates()
			table.before = func(this string) error {
				if this != op {
					return nil
				}
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not " + op}
			}
			m := f.start("w1", j.into, change, func(c *consumer.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			})
			f.stream.put(unit(99, 1, "a", "small"), "a")
			want = append(want, "small")
			<-time.After(failover)
			for n := range 30 {
				f.crowded(n+1, &want)
				<-time.After(aggregate.H / 2)
			}
			if n := len(table.made()); n > 2*8 {
				f.Errorf("%s: %d calls in 75 minutes, want an attempt every 10", op, n)
			}
			f.expect(&j, strings.Join(want, " "))
			if l := f.leases()[0]; l.State != nil || l.StateApart() {
				f.Errorf("%s: the row has a state of %d bytes at %s", op, len(l.State), l.StateAt)
			}
			f.mustStop(m)
			if n := strings.Count(logged.String(), "are not stored"); n != 1 ||
				!strings.Contains(logged.String(), "not "+op) {
				f.Errorf("%s: reported %d times:\n%s", op, n, logged.String())
			}
			f.start("w2", j.into)
			f.stream.put(unit(crowd, 30, "a", "double"), "a")
			f.stream.put("end", "a")
			f.expect(&j, strings.Join(append(want, "end"), " "))
			if f.rebuilt() < crowd {
				f.Errorf("%s: %d records were read again", op, f.rebuilt())
			}
		})
	}
}

// An answer is lost, or the write is: the next worker has the state nevertheless.
func TestStateCallsFail(t *testing.T) {
	lost := errors.New("the connection was cut")
	for _, done := range []bool{false, true} {
		bubble(t, 1, func(f *fleet) {
			var j journal
			var want []string
			table, change := withStates()
			fault := func(op string) error {
				if op != "PutItem" || len(f.happened(consumer.EventFailed)) > 0 {
					return nil
				}
				return lost
			}
			if done {
				table.after = fault
			} else {
				table.before = fault
			}
			m := f.start("w1", j.into, change)
			f.crowded(1, &want)
			f.expect(&j, strings.Join(want, " "))
			<-time.After(failover / 2)
			if failed := f.happened(consumer.EventFailed); len(failed) != 1 ||
				!errors.Is(failed[0].Err, lost) {
				f.Errorf("reported %+v", failed)
			}
			f.mustStop(m)
			f.start("w2", j.into)
			f.stream.put(unit(crowd, 1, "a", "double"), "a")
			f.stream.put("end", "a")
			f.expect(&j, strings.Join(append(want, "end"), " "))
			f.readAgain()
		})
	}
}

// The write of an older state that is done late does not replace the one of the hand-over.
func TestLateState(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		var want []string
		table, change := withStates()
		first := true
		table.late = func(op string) bool {
			late := first && op == "PutItem"
			first = first && !late
			return late
		}
		m := f.start("w1", j.into, change)
		f.crowded(1, &want)
		f.expect(&j, strings.Join(want, " "))
		<-time.After(failover / 2)
		f.mustStop(m)
		if l := f.leases()[0]; table.held == nil || !l.StateApart() || l.StateAt != l.Checkpoint {
			f.Errorf("late %v: the row is %+v", table.held != nil, l)
		}
		f.start("w2", j.into)
		f.crowded(2, &want)
		f.expect(&j, strings.Join(want, " "))
		f.readAgain()
	})
}

// The state has become small: the row has it, and the table has none.
func TestLargeStateShrinks(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		var want []string
		f.start("w1", j.into)
		f.crowded(1, &want)
		f.storedApart(&j, want)
		for range 30 { // the filter forgets the crowd
			<-time.After(aggregate.H / 5)
			f.stream.put(unit(99, uint64(len(want)), "a", "x"), "a")
			want = append(want, "x")
		}
		f.expect(&j, strings.Join(want, " "))
		<-time.After(failover)
		l := f.leases()[0]
		if len(l.State) == 0 || l.StateAt != l.Checkpoint {
			f.Errorf("the row has a state of %d bytes at %s", len(l.State), l.StateAt)
		}
		state, _, err := f.leaseTable().States().Get(f.Context(), l.Key)
		if err != nil || state != nil {
			f.Errorf("the table has a state of %d bytes, %v", len(state), err)
		}
		f.crowded(2, &want)
		f.storedApart(&j, want)
	})
}

// The stored state is older than what the filter remembers. The next worker reads one window again,
// and not all since that state.
func TestOldLargeState(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		var want []string
		table, change := withStates()
		m := f.start("w1", j.into, change)
		f.crowded(1, &want)
		f.storedApart(&j, want)
		table.before = func(op string) error {
			if op == "PutItem" {
				return errors.New("the network is down")
			}
			return nil
		}
		for n := range 60 {
			f.crowded(n+2, &want)
			<-time.After(aggregate.H / 5)
		}
		f.expect(&j, strings.Join(want, " "))
		m.kill()
		<-m.err
		f.start("w2", j.into)
		f.stream.put(unit(crowd, 61, "a", "double"), "a")
		f.stream.put("end", "a")
		f.expect(&j, strings.Join(append(want, "end"), " "))
		if n := f.rebuilt(); n < 20*crowd || n > 24*crowd {
			f.Errorf("%d records were read again, want those of 4H: about %d", n, 22*crowd)
		}
	})
}

// A state in the table that cannot be read is reported, and the filter is made from the stream.
func TestUnreadableLargeState(t *testing.T) {
	for _, state := range []types.AttributeValue{
		&types.AttributeValueMemberB{Value: []byte{99, 1, 2}},
		&types.AttributeValueMemberS{Value: "text"},
		nil,
	} {
		bubble(t, 1, func(f *fleet) {
			var j journal
			var want []string
			m := f.start("w1", j.into)
			f.crowded(1, &want)
			f.storedApart(&j, want)
			f.mustStop(m)
			l := f.leases()[0]
			row := map[string]types.AttributeValue{
				"leaseKey":       &types.AttributeValueMemberS{Value: string(l.Key)},
				"leaseCounter":   &types.AttributeValueMemberN{Value: "99"},
				"runnelStateAt":  &types.AttributeValueMemberS{Value: l.Checkpoint.String()},
				"runnelUnknown!": &types.AttributeValueMemberBOOL{Value: true},
			}
			if state != nil {
				row["runnelState"] = state
			}
			_, err := f.table.PutItem(f.Context(), &dynamodb.PutItemInput{
				TableName: aws.String("orders-app-RunnelState"), Item: row,
				ConditionExpression:      aws.String("attribute_exists(#k)"),
				ExpressionAttributeNames: map[string]string{"#k": "leaseKey"},
			})
			if err != nil {
				f.Fatal(err)
			}
			f.start("w2", j.into)
			f.stream.put(unit(crowd, 1, "a", "double"), "a")
			f.crowded(2, &want)
			f.storedApart(&j, want) // the worker's counter is lower, and the row shows its hold
			if f.rebuilt() < crowd {
				f.Errorf("%d records were read again", f.rebuilt())
			}
		})
	}
}
