package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
)

// step is a kind of write in the life of a lease.
type step string

const (
	stepAsk        step = "ask"
	stepTake       step = "take" // also the adoption of a lease that was passed
	stepPass       step = "pass"
	stepCheckpoint step = "checkpoint"
	stepRenew      step = "renew"
	stepRelease    step = "release"
	stepFinish     step = "finish"
	stepAnnounce   step = "announce"
	stepCreate     step = "create"
)

var steps = []step{
	stepAsk, stepTake, stepPass, stepCheckpoint, stepRenew, stepRelease, stepFinish, stepAnnounce,
	stepCreate,
}

// stepOf returns the kind of a write, by the attributes that it sets and removes.
func stepOf(in *dynamodb.UpdateItemInput) step {
	sets := func(attribute string) bool {
		_, ok := in.ExpressionAttributeValues[":"+attribute]
		return ok
	}
	for _, name := range in.ExpressionAttributeNames {
		if strings.HasPrefix(name, "runnelWorker.") {
			return stepAnnounce
		}
	}
	_, removes, _ := strings.Cut(*in.UpdateExpression, "REMOVE ")
	checkpoint, _ := in.ExpressionAttributeValues[":checkpoint"].(*types.AttributeValueMemberS)
	switch {
	case sets("ask"):
		return stepAsk
	case checkpoint != nil && checkpoint.Value == string(runnel.ShardEnd):
		return stepFinish
	case sets("leaseOwner") && sets("runnelHold"):
		return stepTake
	case sets("leaseOwner"):
		return stepPass
	case strings.Contains(removes, "#leaseOwner"):
		return stepRelease
	case checkpoint != nil:
		return stepCheckpoint
	default:
		return stepRenew
	}
}

// faulty is one worker's connection to the table, with faults by the kind of write.
type faulty struct {
	lease.DynamoDBAPI
	// before and after may fail a write, or its answer; nil for no faults.
	before, after func(ctx context.Context, s step) error
}

func (l *faulty) run(ctx context.Context, s step, call func() error) error {
	if l.before != nil {
		if err := l.before(ctx, s); err != nil {
			return err
		}
	}
	err := call()
	if l.after != nil && err == nil {
		err = l.after(ctx, s)
	}
	return err
}

func (l *faulty) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.UpdateItemOutput, err error) {
	err = l.run(ctx, stepOf(in), func() (err error) {
		out, err = l.DynamoDBAPI.UpdateItem(ctx, in, o...)
		return err
	})
	return out, err
}

func (l *faulty) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.PutItemOutput, err error) {
	if strings.HasSuffix(*in.TableName, "-RunnelState") {
		return l.DynamoDBAPI.PutItem(ctx, in, o...)
	}
	err = l.run(ctx, stepCreate, func() (err error) {
		out, err = l.DynamoDBAPI.PutItem(ctx, in, o...)
		return err
	})
	return out, err
}

// judge is the table as all workers see it. It checks each checkpoint: all records up to it must
// have been handled.
type judge struct {
	*leasetest.Memory
	trial *trial
}

func (j *judge) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := j.Memory.UpdateItem(ctx, in, o...)
	key, _ := in.Key["leaseKey"].(*types.AttributeValueMemberS)
	to, ok := in.ExpressionAttributeValues[":checkpoint"].(*types.AttributeValueMemberS)
	if err == nil && key != nil && ok {
		j.checkpointed(runnel.ShardID(key.Value), runnel.SequenceNumber(to.Value))
	}
	return out, err
}

func (j *judge) checkpointed(shard runnel.ShardID, to runnel.SequenceNumber) {
	if !to.IsNumber() && to != runnel.ShardEnd {
		return
	}
	t := j.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.mu.Lock()
	defer t.stream.mu.Unlock()
	i := slices.IndexFunc(t.stream.shards, func(s *fakeShard) bool { return s.id == shard })
	for _, r := range t.stream.shards[i].records {
		this := *r.SequenceNumber
		if to != runnel.ShardEnd && runnel.SequenceNumber(this).Compare(to) > 0 {
			return
		}
		if t.counts[this] == 0 && t.doubles[this] == 0 {
			t.Errorf("the checkpoint %s of %s is beyond %s, which was not handled", to, shard, this)
			return
		}
	}
}

// trial is a fleet under faults, and the oracle of its hand-overs.
type trial struct {
	*fleet
	judge *judge
	// excuses are the moments at which the records of a shard since its last checkpoint were lost
	// to its next owner.
	excuses map[runnel.ShardID][]time.Time
	handled map[string]time.Time         // the last time, by sequence number
	kept    map[runnel.ShardID]bool      // by a static worker that stopped
	both    map[runnel.ShardID]time.Time // until then two processes of one name may read it
	doubles map[string]int               // sequence numbers of units that were put again
	flow    *flow                        // measures the silence of shards; nil for no measure
}

func newTrial(f *fleet) *trial {
	t := &trial{
		fleet: f, excuses: map[runnel.ShardID][]time.Time{}, doubles: map[string]int{},
		handled: map[string]time.Time{}, kept: map[runnel.ShardID]bool{},
		both: map[runnel.ShardID]time.Time{},
	}
	t.judge = &judge{Memory: f.table, trial: t}
	return t
}

// excuse allows repetitions of a shard's records from now on, for a while.
func (t *trial) excuse(shard runnel.ShardID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.excuses[shard] = append(t.excuses[shard], time.Now())
}

// keep notes whether a static worker has kept a shard politely, and returns the note before.
func (t *trial) keep(shard runnel.ShardID, now bool) (before bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.kept[shard] = t.kept[shard], now
	return before
}

// overlap notes that an older process of the same name may handle records of a shard until its next
// write, while the younger one does.
func (t *trial) overlap(shard runnel.ShardID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.both[shard] = time.Now().Add(failover)
}

// isExcused reports whether the records of a shard may have been lost to its owner since a time.
func (t *trial) isExcused(shard runnel.ShardID, since time.Time) bool {
	return time.Now().Before(t.both[shard]) || slices.ContainsFunc(t.excuses[shard], func(at time.Time) bool { return !at.Before(since) })
}

// into makes a worker's handler and events those of the trial.
func (t *trial) into(c *consumer.Config) {
	worker := c.WorkerID
	c.Handler = func(_ context.Context, b *consumer.Batch) error {
		t.mu.Lock()
		first := b.Records[0].Position // if it is not repeated, the others are not
		before, again := t.handled[string(first.Sequence)]
		if again && !t.isExcused(b.ShardID, before) {
			t.Errorf("%s handled %s of %s again without a cause at %s", worker, first, b.ShardID,
				time.Now().Format("15:04:05.000"))
		}
		for _, r := range b.Records {
			t.handled[string(r.Position.Sequence)] = time.Now()
		}
		t.mu.Unlock()
		t.record(b.Records)
		if t.flow != nil && !again {
			t.flow.note(b)
		}
		return nil
	}
	observe := c.OnEvent
	c.OnEvent = func(e consumer.Event) {
		observe(e)
		switch e.Kind {
		case consumer.EventLeaseTaken, consumer.EventLeaseReceived:
			t.keep(e.ShardID, false)
		case consumer.EventLeaseLost, consumer.EventLeaseExpired, consumer.EventLeaseStolen,
			consumer.EventHandOverTimeout:
			t.keep(e.ShardID, false)
			t.excuse(e.ShardID)
		case consumer.EventLeaseKept:
			t.keep(e.ShardID, true)
		case consumer.EventLeaseResumed:
			if !t.keep(e.ShardID, false) { // from a process that was killed, or that lives
				t.excuse(e.ShardID)
				t.overlap(e.ShardID)
			}
		default:
		}
	}
}

// begin starts a worker behind a connection with faults.
func (t *trial) begin(id string, l *faulty, change ...func(*consumer.Config)) *member {
	l.DynamoDBAPI = t.judge
	behind := func(c *consumer.Config) { c.DynamoDB = l }
	return t.start(id, append([]func(*consumer.Config){t.into, behind}, change...)...)
}

// die kills a worker. The shards that it holds lose what it has handled since their checkpoints.
func (t *trial) die(m *member, id string) {
	m.kill()
	for _, l := range t.leases() {
		if l.Owner == id {
			t.excuse(l.Key)
		}
	}
}

// A worker dies at each step of the life of a lease, before the write is done or after it. No
// record is lost, and every shard goes on in time.
func TestDeathAtEachStep(t *testing.T) {
	for _, at := range steps {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, done %v", at, done), func(t *testing.T) {
				bubble(t, 4, func(f *fleet) { deathAt(newTrial(f), at, done) })
			})
		}
	}
}

// deadly kills the first worker that comes to a step, once it is armed.
type deadly struct {
	*trial
	at    step
	done  bool
	mu    sync.Mutex
	armed bool
	dead  string // the worker
}

func (d *deadly) worker(id string) *member {
	var m *member
	hook := func(_ context.Context, s step) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.armed || s != d.at {
			return nil
		}
		d.armed, d.dead = false, id
		d.die(m, id)
		return seam.ErrKilled
	}
	l := &faulty{}
	if d.done {
		l.after = hook
	} else {
		l.before = hook
	}
	// The lock keeps the worker from its first write until m is set.
	d.mu.Lock()
	defer d.mu.Unlock()
	m = d.begin(id, l)
	return m
}

func (d *deadly) hasDied() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead != ""
}

func deathAt(t *trial, at step, done bool) {
	d := &deadly{trial: t, at: at, done: done}
	w := newFlow(t.fleet)
	defer w.stop()
	t.flow = w
	w1, w2 := d.worker("w1"), d.worker("w2")
	w.settle(failover, 2)
	if at == stepRenew { // a busy shard has checkpoints instead
		w.stop()
		<-time.After(failover)
	}
	d.mu.Lock()
	d.armed = true
	d.mu.Unlock()
	w3 := d.worker("w3")
	<-time.After(2 * failover)
	t.stream.split(0)
	<-time.After(2 * failover)
	live := map[string]*member{"w1": w1, "w2": w2, "w3": w3}
	delete(live, d.dead)
	for id, m := range live { // one leaves; if all leave, leases are released
		if at != stepRelease && len(live) < 3 {
			break
		}
		delete(live, id)
		m.stop()
		if at != stepRelease {
			break
		}
	}
	<-time.After(2 * failover)
	if !d.hasDied() {
		t.Fatalf("no worker came to the step %s", at)
	}
	w.quiet(failover*3/2+1500*time.Millisecond, "when a worker died")
	d.worker("w4")
	<-time.After(3 * failover)
	w.stop()
	t.complete()
	if free := t.loads()[""]; free > 0 {
		t.dump()
		t.Errorf("%d leases have no owner", free)
	}
}

// A worker dies with one lease of four, and the next worker finds the others free. It takes all and
// passes none to the dead one, whose row is as old as a live worker's: not to share them evenly,
// and not when it leaves.
func TestNothingIsPassedToTheDead(t *testing.T) {
	for _, stays := range []time.Duration{time.Second, 4 * failover} {
		bubble(t, 4, func(f *fleet) {
			w1 := f.start("w1")
			f.await(failover, "w1 has all", func() bool { return f.loads()["w1"] == 4 })
			<-time.After(failover)
			w1.kill()
			for _, l := range f.leases()[1:] {
				if _, err := f.leaseTable().Release(f.Context(), l, lease.Mark{}); err != nil {
					f.Fatal(err)
				}
			}
			w2 := f.start("w2")
			<-time.After(stays)
			loads := f.loads()
			if stays > 2*failover && loads["w2"] != 4 || loads["w2"] < 3 {
				f.Errorf("after %s: %v", stays, loads)
			}
			f.mustStop(w2)
			if passed := f.happened(consumer.EventLeasePassed); len(passed) > 0 {
				f.Errorf("after %s: passed %v", stays, passed)
			}
		})
	}
}
