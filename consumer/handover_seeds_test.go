package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
)

// handOverSeeds returns how many seeds CI runs.
func handOverSeeds() int {
	if underRace {
		return 10
	}
	return 100
}

// TestHandOversSurvive runs fleets whose workers come and go all the time, while writes to the
// table are refused, lost, answered late or never, workers die, are cut off from the table or the
// stream, have namesakes, and a foreign program robs them. Every record is delivered, in order; no
// checkpoint is beyond what was handled; and a record comes again only after a loss.
func TestHandOversSurvive(t *testing.T) {
	n := handOverSeeds() * soak()
	var records, again int
	for seed := range uint64(n) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, 3+int(seed%4), func(f *fleet) {
				s := &storm{
					trial: newTrial(f), seed: seed,
					chaos:   &chaos{random: rand.New(rand.NewPCG(seed, 20))},
					numbers: map[byte]uint64{}, dry: map[runnel.ShardID]time.Time{},
				}
				s.run()
				got, repeated := f.delivered()
				records, again = records+got, again+repeated
			})
		})
	}
	t.Logf("soak: %d seeds, %d records, %d again", n, records, again)
}

// storm is the plan of one seed.
type storm struct {
	*trial
	*chaos
	seed    uint64
	live    []*stormy
	started int
	puts    int

	reshards  bool
	producers int             // of units; 0 for plain records
	numbers   map[byte]uint64 // of their last units
	dry       map[runnel.ShardID]time.Time
}

// stormy is a worker in the storm.
type stormy struct {
	*member
	id     string
	static bool
	cut    *cutLink
}

// cutLink is a connection to the table that hangs until a time.
type cutLink struct {
	mu    sync.Mutex
	until time.Time
}

func (c *cutLink) block(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
}

func (c *cutLink) hang(ctx context.Context) error {
	c.mu.Lock()
	left := time.Until(c.until)
	c.mu.Unlock()
	if left <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return errCut
	}
}

// faultPercent is how many of a hundred writes have one kind of fault.
const faultPercent = 3

// connect returns a connection with faults.
func (s *storm) connect(cut *cutLink) *faulty {
	l := &faulty{}
	l.before = func(ctx context.Context, _ step) error {
		if err := cut.hang(ctx); err != nil {
			return err
		}
		switch {
		case s.chance(faultPercent):
			return &dynamotypes.ProvisionedThroughputExceededException{}
		case s.chance(faultPercent):
			return errCut
		case s.chance(1):
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	l.after = func(ctx context.Context, _ step) error {
		switch {
		case s.chance(faultPercent):
			return errCut
		case s.chance(1):
			select { // the answer comes late
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(s.pick(2000)) * failover / 1000):
			}
		}
		return nil
	}
	return l
}

// add starts a worker, under a new name unless it has one.
func (s *storm) add(id string, static bool) {
	if id == "" {
		s.started++
		id = fmt.Sprintf("w%d", s.started)
	}
	cut := &cutLink{}
	m := s.begin(id, s.connect(cut), func(c *consumer.Config) {
		c.Static, c.MaxRecords, c.AuditInterval = static, 7, 30*time.Second
		handle := c.Handler
		c.Handler = func(ctx context.Context, b *consumer.Batch) error {
			if s.chance(1) { // a slow handler, which a hand-over waits for
				select {
				case <-ctx.Done():
					s.excuse(b.ShardID)
					return ctx.Err()
				case <-time.After(time.Duration(s.pick(40)) * time.Second):
				}
			}
			return handle(ctx, b)
		}
	})
	s.live = append(s.live, &stormy{m, id, static, cut})
}

// pull takes a worker out of the list.
func (s *storm) pull(i int) *stormy {
	w := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	return w
}

// ended waits for a worker's end.
func (s *storm) ended(w *stormy) {
	if err := <-w.err; err != nil && !errors.Is(err, consumer.ErrReplaced) &&
		!errors.Is(err, seam.ErrKilled) {
		s.Errorf("seed %d: %s ended with %v", s.seed, w.id, err)
	}
}

func (s *storm) run() {
	s.reshards = s.chance(50)
	s.producers = []int{0, 0, 3, crowd}[s.pick(4)]
	s.stream.fault = func(op string, shard runnel.ShardID) error {
		switch {
		case op == "GetRecords" && (s.chance(2) || s.isDry(shard)):
			return &types.ProvisionedThroughputExceededException{}
		case s.chance(1):
			return errCut
		}
		return nil
	}
	s.add("", false)
	s.add("", s.chance(50))
	for range 80 {
		s.put()
		s.turn()
		<-time.After(time.Duration(s.pick(4000)) * time.Millisecond)
	}
	s.chaos.mu.Lock()
	s.calm = true
	s.chaos.mu.Unlock()
	s.await(20*failover, fmt.Sprintf("%d records (seed %d)", s.puts, s.seed), func() bool {
		n, _ := s.delivered()
		return n == s.puts
	})
	<-time.After(4 * failover) // leases that a robber gave up have owners again
	s.doublesAreDropped()
	for len(s.live) > 0 {
		w := s.pull(0)
		w.stop()
		s.ended(w)
	}
	if s.Failed() {
		s.dump()
	}
}

// isDry reports whether a shard is throttled for a while.
func (s *storm) isDry(shard runnel.ShardID) bool {
	s.chaos.mu.Lock()
	defer s.chaos.mu.Unlock()
	return !s.calm && time.Now().Before(s.dry[shard])
}

// put puts a few records into each open shard.
func (s *storm) put() {
	s.stream.mu.Lock()
	shards := len(s.stream.open())
	s.stream.mu.Unlock()
	for i := range shards {
		key := s.stream.keysOf(i, 1)[0]
		for range 1 + s.pick(6) {
			s.puts++
			data := fmt.Sprint(s.puts)
			if s.producers > 0 {
				id := byte(1 + s.pick(s.producers))
				s.numbers[id]++
				data = unit(id, s.numbers[id], key, data)
			}
			s.stream.put(data, key)
		}
	}
}

// turn does something to the fleet.
func (s *storm) turn() {
	i := s.pick(len(s.live))
	w := s.live[i]
	switch s.pick(14) {
	case 0, 1:
		if len(s.live) < 6 {
			s.add("", s.chance(30))
		}
	case 2, 3:
		if len(s.live) > 1 {
			s.pull(i).stop()
			s.ended(w)
		}
	case 4:
		s.die(w.member, s.pull(i).id)
		s.ended(w)
		s.add("", false)
	case 5: // a static worker comes again under its name, another one under a new one
		s.pull(i).stop()
		s.ended(w)
		s.again(w)
	case 6:
		s.die(w.member, s.pull(i).id)
		s.ended(w)
		s.again(w)
	case 7:
		if w.static {
			s.namesake(i)
		}
	case 8:
		w.cut.block(failover/2 + time.Duration(s.pick(2500))*failover/1000)
	case 9:
		s.stream.mu.Lock()
		shard := s.stream.open()[0].id
		s.stream.mu.Unlock()
		s.chaos.mu.Lock()
		s.dry[shard] = time.Now().Add(failover)
		s.chaos.mu.Unlock()
	case 10:
		s.rob()
	case 11:
		if s.reshards {
			s.stream.split(s.pick(100))
		}
	case 12:
		if s.reshards {
			s.stream.merge(s.pick(100))
		}
	}
}

// namesake starts a second process of a static worker. One of the two ends: the older one, or by
// lot if no row has the number of the first. Two without leases may not know of each other.
func (s *storm) namesake(i int) {
	older := s.pull(i)
	s.add(older.id, true)
	younger := s.live[len(s.live)-1]
	var err error
	select {
	case err = <-older.err:
	case err = <-younger.err:
		s.live[len(s.live)-1] = older
		s.fleet.mu.Lock()
		s.workers[older.id] = older.member
		s.fleet.mu.Unlock()
	case <-time.After(6 * failover):
		if s.loads()[older.id] > 0 {
			s.Errorf("seed %d: two processes of %s live on", s.seed, older.id)
			s.dump()
		}
		s.live = append(s.live, older)
	}
	if err != nil && !errors.Is(err, consumer.ErrReplaced) {
		s.Errorf("seed %d: a process of %s ended with %v", s.seed, older.id, err)
	}
}

func (s *storm) again(w *stormy) {
	if w.static {
		s.add(w.id, true)
	} else {
		s.add("", false)
	}
}

// rob takes a lease as a program does that knows nothing of ours, and gives it up later.
func (s *storm) rob() {
	leases := slices.DeleteFunc(s.leases(), func(l lease.Lease) bool { return l.Ended() })
	if len(leases) == 0 {
		return
	}
	l := leases[s.pick(len(leases))]
	const robber = "java"
	s.excuse(l.Key)
	s.overlap(l.Key) // its holder goes on until its next write
	_, err := s.table.UpdateItem(s.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("orders-app"), Key: keyOf(l.Key),
		UpdateExpression:         aws.String("SET #owner = :java, #counter = :next"),
		ConditionExpression:      aws.String("#counter = :seen"),
		ExpressionAttributeNames: map[string]string{"#owner": "leaseOwner", "#counter": "leaseCounter"},
		ExpressionAttributeValues: map[string]dynamotypes.AttributeValue{
			":java": &dynamotypes.AttributeValueMemberS{Value: robber},
			":next": &dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(l.Counter + 1)},
			":seen": &dynamotypes.AttributeValueMemberN{Value: fmt.Sprint(l.Counter)},
		},
	})
	if err != nil {
		return // its holder was faster
	}
	s.group.Go(func() {
		<-time.After(failover / 2)
		s.excuse(l.Key)
		_, _ = s.table.UpdateItem(context.WithoutCancel(s.Context()), &dynamodb.UpdateItemInput{
			TableName: aws.String("orders-app"), Key: keyOf(l.Key),
			UpdateExpression:         aws.String("REMOVE #owner"),
			ConditionExpression:      aws.String("#owner = :java"),
			ExpressionAttributeNames: map[string]string{"#owner": "leaseOwner"},
			ExpressionAttributeValues: map[string]dynamotypes.AttributeValue{
				":java": &dynamotypes.AttributeValueMemberS{Value: robber},
			},
		})
	})
}

func keyOf(id runnel.ShardID) map[string]dynamotypes.AttributeValue {
	return map[string]dynamotypes.AttributeValue{
		"leaseKey": &dynamotypes.AttributeValueMemberS{Value: string(id)},
	}
}

// doublesAreDropped puts the last units of each open shard again. None may be delivered.
func (s *storm) doublesAreDropped() {
	if s.producers == 0 {
		return
	}
	before, again := s.delivered()
	s.stream.mu.Lock()
	var last []types.Record
	for _, shard := range s.stream.open() {
		last = append(last, shard.records[max(0, len(shard.records)-10):]...)
	}
	s.stream.mu.Unlock()
	for _, r := range last {
		s.fleet.mu.Lock()
		s.stream.mu.Lock()
		s.doubles[fmt.Sprint(s.stream.sequence+1)]++
		s.stream.mu.Unlock()
		s.fleet.mu.Unlock()
		s.stream.put(string(r.Data), *r.PartitionKey)
	}
	<-time.After(failover)
	if after, repeated := s.delivered(); after != before || repeated != again {
		s.Errorf("seed %d: of %d doubles, %d were delivered", s.seed, len(last),
			after-before+repeated-again)
	}
}
