package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// The producers of a mill, and a fleet with each handler form whose workers die, lose the network,
// fail, stop their shards, and are paused, resumed and relieved of shards at random. Every
// acknowledged record is handled, at one position only, in order per key; and no checkpoint passes
// a record in work.
func TestFormsSurvive(t *testing.T) {
	var stops, seeks int
	seeds := 4 * soak()
	if underRace {
		seeds = 2
	}
	for i := range seeds {
		seed := uint64(i + 1)
		onEachForm(t, 2, func(f *fleet, form form) {
			d := surviveForm(f, form.name, seed)
			stops, seeks = stops+len(f.happened(consumer.EventShardStopped)), seeks+d.seeks
		})
	}
	if stops == 0 || seeks == 0 {
		t.Errorf("%d shards were stopped, and %d sought", stops, seeks)
	}
	t.Logf("soak: %d seeds for each form", seeds)
}

// desk is where records are handled.
type desk struct {
	*fleet
	c *chaos
	j journal

	mu   sync.Mutex
	work map[string]map[place]int // the records in work, by worker
	bad  int                      // records that failed

	seeks int // that succeeded
}

func (d *desk) move(worker string, r *runnel.Record, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work[worker] == nil {
		d.work[worker] = map[place]int{}
	}
	p := place{r.ShardID, r.Position}
	if d.work[worker][p] += by; d.work[worker][p] == 0 {
		delete(d.work[worker], p)
	}
}

// handle handles a record, or fails.
func (d *desk) handle(ctx context.Context, worker string, r *runnel.Record) error {
	d.move(worker, r, 1)
	defer d.move(worker, r, -1)
	if d.c.chance(30) {
		if err := doing(ctx, time.Duration(d.c.pick(2_000))*time.Millisecond); err != nil {
			return err
		}
	}
	switch {
	case d.c.chance(6):
		d.mu.Lock()
		defer d.mu.Unlock()
		d.bad++
		return errCut
	case d.c.chance(1):
		panic("bad luck")
	}
	if ctx.Err() == nil { // else the result does not count
		d.j.take([]runnel.Record{*r})
	}
	return nil
}

// checkpointed checks a checkpoint against the worker's records in work.
func (d *desk) checkpointed(e consumer.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.work[e.Worker] {
		if p.shard == e.ShardID && !e.Position.Less(p.at) {
			d.Errorf("%s checkpointed %s of %s, and %s is in work", e.Worker, e.Position, p.shard,
				p.at)
		}
	}
}

func (d *desk) into(form, worker string) func(*consumer.Config) {
	var do each = func(ctx context.Context, r *runnel.Record) error {
		return d.handle(ctx, worker, r)
	}
	return func(c *consumer.Config) {
		c.MaxRecords, c.AuditInterval = 9, 30*time.Second
		c.OnError = consumer.ErrorPolicy{Attempts: 2, Backoff: time.Second}
		switch form {
		case "Record":
			do.asRecord(3)(c)
		case "Handler":
			do.asHandler(c)
		default:
			c.Handler = nil
			c.NewProcessor = func(context.Context, consumer.Shard) (consumer.Processor, error) {
				return &hasty{desk: d, do: do}, nil
			}
		}
		observe := c.OnEvent
		c.OnEvent = func(e consumer.Event) {
			observe(e)
			if e.Kind == consumer.EventCheckpointed {
				d.checkpointed(e)
			}
		}
	}
}

// hasty is a Processor that checkpoints at records at random, inside aggregates, too.
type hasty struct {
	*desk
	do each
}

func (p *hasty) Process(ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
	for i := range b.Records {
		r := &b.Records[i]
		if err := p.do(ctx, r); err != nil {
			return consumer.FailedAt(r, err)
		}
		if p.c.pick(5) == 0 {
			if err := c.Checkpoint(ctx, r.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *hasty) Stop(context.Context, consumer.StopReason, *consumer.Checkpointer) error {
	return nil
}

func surviveForm(f *fleet, form string, seed uint64) *desk {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 11))}
	m := newMill(f, c)
	faults := &chaos{random: rand.New(rand.NewPCG(seed, 12))}
	f.stream.fault = func(string, runnel.ShardID) error {
		if faults.chance(1) {
			return errCut
		}
		return nil
	}
	d := &desk{fleet: f, c: faults, work: map[string]map[place]int{}}
	workers := 0
	start := func() *member {
		workers++
		name := fmt.Sprintf("w%d", workers)
		return f.start(name, d.into(form, name))
	}
	live := []*member{start(), start(), start()}
	for range 150 {
		m.grind()
		w := live[c.pick(len(live))]
		switch c.pick(16) {
		case 0:
			f.stream.split(c.pick(100))
		case 1, 2:
			f.stream.merge(c.pick(100))
		case 3:
			w.kill()
			<-w.err
			live[slices.Index(live, w)] = start()
		case 4:
			f.mustStop(w)
			live[slices.Index(live, w)] = start()
		case 5:
			time.AfterFunc(m.between(30*time.Second), w.link.cut())
		case 6:
			w.Pause()
		case 7:
			if held := f.heldBy(w.ID()); len(held) > 0 {
				_ = w.Release(f.Context(), held[c.pick(len(held))])
			}
		case 8:
			d.seekBack(w)
		default:
			w.Resume()
		}
		m.turn(m.between(10 * time.Second))
	}
	m.turn(3 * m.horizon)
	faults.mu.Lock()
	faults.calm = true
	faults.mu.Unlock()
	for range 3 {
		for _, w := range live {
			w.Resume()
		}
		m.turn(2 * failover)
	}
	f.settled(func() int { return len(d.j.all()) })
	again := m.check(d.j.all())
	doubles, _ := f.dropped()
	stops := len(f.happened(consumer.EventShardStopped))
	f.Logf("%s, seed %d: %d shards, %d workers, %d records acknowledged, %d dropped, %d again, "+
		"%d failed, %d shards stopped, %d seeks", form, seed, len(f.stream.shards), workers,
		len(m.acked), doubles, again, d.bad, stops, d.seeks)
	if doubles == 0 || again == 0 {
		f.Errorf("seed %d: too tame", seed)
	}
	return d
}

// seekBack moves a worker's shard back by some records, some of them aggregates.
func (d *desk) seekBack(w *member) {
	held := d.heldBy(w.ID())
	if len(held) == 0 {
		return
	}
	shard := held[d.c.pick(len(held))]
	var at runnel.Position
	for _, l := range d.leases() {
		if l.Key == shard {
			at = l.Processed()
		}
	}
	d.stream.mu.Lock()
	sh, _ := d.stream.find(string(shard))
	before := slices.DeleteFunc(slices.Clone(sh.records), func(r types.Record) bool {
		return runnel.SequenceNumber(*r.SequenceNumber).Compare(at.Sequence) >= 0
	})
	d.stream.mu.Unlock()
	to := runnel.Start()
	if n := len(before); n > 0 {
		back := before[max(0, n-1-d.c.pick(10))]
		to.Sequence = runnel.SequenceNumber(*back.SequenceNumber)
	}
	if err := w.Seek(d.Context(), shard, to); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.seeks++
	}
}

func (j *journal) all() []runnel.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.records)
}
