package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
)

// mill simulates producers of units, in virtual time and drawn from a seed: answers are lost,
// copies arrive late or never, units are given up, and aggregates of two lanes meet a split shard.
type mill struct {
	*fleet
	*chaos
	horizon time.Duration
	events  []millEvent
	runs    []*millRun
	keys    []string
	acked   map[string]bool // records that must be delivered
	copies  int             // of units, in the stream
	voids   int
}

type millEvent struct {
	at time.Time
	do func()
}

type millRun struct {
	id   byte
	next uint64
	open map[uint64]*millUnit
	busy map[string]bool // lanes with a unit in flight
}

type millUnit struct {
	part
	run     *millRun
	first   time.Time // send
	settled bool
}

const millHorizon = time.Minute

func newMill(f *fleet, c *chaos) *mill {
	seam.SetH(f, millHorizon)
	m := &mill{fleet: f, chaos: c, horizon: millHorizon, keys: keys(7), acked: map[string]bool{}}
	m.addRun()
	m.addRun()
	return m
}

func (m *mill) addRun() {
	m.runs = append(m.runs, &millRun{
		id: byte(len(m.runs) + 1), next: 1, open: map[uint64]*millUnit{}, busy: map[string]bool{},
	})
}

func (m *mill) percent(n int) bool { return m.pick(100) < n }

// between returns a time from 0 to longest.
func (m *mill) between(longest time.Duration) time.Duration {
	return time.Duration(m.pick(int(longest/time.Millisecond))) * time.Millisecond
}

func (m *mill) after(d time.Duration, do func()) {
	m.events = append(m.events, millEvent{time.Now().Add(d), do})
}

// turn runs the events of the next d.
func (m *mill) turn(d time.Duration) {
	end := time.Now().Add(d)
	for {
		slices.SortStableFunc(m.events, func(a, b millEvent) int { return a.at.Compare(b.at) })
		if len(m.events) == 0 || m.events[0].at.After(end) {
			<-time.After(time.Until(end))
			return
		}
		e := m.events[0]
		m.events = m.events[1:]
		<-time.After(time.Until(e.at))
		e.do()
	}
}

// grind freezes new units of free lanes, some two in one aggregate.
func (m *mill) grind() {
	if m.percent(3) && len(m.runs) < 200 {
		m.addRun()
	}
	run := m.runs[len(m.runs)-1-m.pick(2)]
	var units []*millUnit
	for _, key := range m.keys {
		if !run.busy[key] && m.percent(40) {
			units = append(units, m.freeze(run, key))
		}
	}
	for len(units) > 0 {
		n := 1
		if len(units) > 1 && m.percent(20) {
			n = 2
		}
		m.send(units[:n]...)
		units = units[n:]
	}
}

func (m *mill) freeze(run *millRun, key string) *millUnit {
	u := &millUnit{run: run, first: time.Now()}
	u.number, u.low, u.key = run.next, run.next, key
	for number := range run.open {
		u.low = min(u.low, number)
	}
	for i := range 1 + m.pick(3) {
		u.data = append(u.data, fmt.Sprintf("%d|%s|%06d|%d", run.id, key, u.number, i))
	}
	run.next++
	run.open[u.number] = u
	run.busy[key] = true
	return u
}

func (m *mill) settle(u *millUnit, acked bool) {
	if u.settled {
		return
	}
	u.settled = true
	delete(u.run.open, u.number)
	delete(u.run.busy, u.key)
	for _, data := range u.data {
		if acked {
			m.acked[data] = true
		}
	}
}

// send makes one attempt. Without an answer each unit is sent again by itself, for as long as H.
func (m *mill) send(units ...*millUnit) {
	if len(units) == 1 && units[0].settled {
		return
	}
	if time.Since(units[0].first) > m.horizon {
		m.settle(units[0], false)
		return
	}
	delay := m.between(2 * time.Second)
	if m.percent(10) {
		delay = m.between(m.horizon)
	}
	arrives := m.percent(92)
	answered := arrives && delay <= 2*time.Second && m.percent(75)
	if arrives {
		m.after(delay, func() { m.land(units, answered) })
	}
	if !answered {
		m.after(2*time.Second+m.between(15*time.Second), func() {
			for _, u := range units {
				m.send(u)
			}
		})
	}
}

// land puts a copy into the shard of its first unit. The copy is void if the second unit belongs to
// another shard.
func (m *mill) land(units []*millUnit, answered bool) {
	parts := make([]part, len(units))
	for i, u := range units {
		parts[i] = u.part
	}
	shard := m.stream.put(pack(units[0].run.id, parts...), units[0].key)[0]
	m.copies++
	if len(units) == 2 && !m.stream.holds(shard, units[1].key) {
		m.voids++
		for _, u := range units {
			if answered {
				m.send(u)
			}
		}
		return
	}
	for _, u := range units {
		if answered {
			m.settle(u, true)
		}
	}
}

func (s *fakeStream) holds(shard runnel.ShardID, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh, err := s.find(string(shard))
	return err == nil && sh.keys.Contains(keyspace.Of(key))
}

// check checks records in the order of their delivery, for a sink in the order of the shards. Each
// record has one position only, a run's lanes are in order, and no acknowledged record is missing.
func (m *mill) check(records []runnel.Record) (again int) {
	m.Helper()
	at := map[string]runnel.Record{}
	highest := map[string]string{}
	for _, r := range records {
		data := string(r.Data)
		if before, ok := at[data]; ok {
			if again++; before.ShardID != r.ShardID || before.Position != r.Position {
				m.Errorf("%s is a double: at %s in %s, and at %s in %s", data,
					before.Position, before.ShardID, r.Position, r.ShardID)
			}
			continue
		}
		at[data] = r
		lane := strings.Join(strings.Split(data, "|")[:2], "|")
		if highest[lane] > data {
			m.Errorf("%s came behind %s", data, highest[lane])
		}
		highest[lane] = data
	}
	missing := 0
	for data := range m.acked {
		if _, ok := at[data]; !ok {
			missing++
			m.Logf("missing: %s", data)
		}
	}
	if missing > 0 {
		m.Errorf("%d of %d acknowledged records are missing", missing, len(m.acked))
	}
	return again
}

// chaosOf is a kind of disturbance for the fleet.
type chaosOf struct {
	name    string
	workers int
	sink    bool
	kills   bool
}

// The test holds under any behaviour of the producers and any disturbance of the fleet. A handler
// gets every acknowledged record, in order and at one position only, and, as long as no lease
// changes hands, once. A sink has every record exactly once.
func TestUnitsSurvive(t *testing.T) {
	for _, what := range []chaosOf{
		{name: "one worker", workers: 1},
		{name: "handlers", workers: 3, kills: true},
		{name: "sink", workers: 3, sink: true, kills: true},
	} {
		for i := range 4 * soak() {
			seed := uint64(i + 1)
			t.Run(fmt.Sprintf("%s, seed %d", what.name, seed), func(t *testing.T) {
				bubble(t, 2, func(f *fleet) { surviveUnits(f, seed, what) })
			})
		}
	}
	t.Logf("soak: %d seeds", 4*soak())
}

func surviveUnits(f *fleet, seed uint64, what chaosOf) {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 7))}
	m := newMill(f, c)
	faults := &chaos{random: rand.New(rand.NewPCG(seed, 8)), calm: !what.kills}
	f.stream.fault = func(string, runnel.ShardID) error {
		if faults.chance(1) {
			return errCut
		}
		return nil
	}
	var j journal
	s := newChain(faults, 20)
	workers := 0
	start := func() *member {
		workers++
		return f.start(fmt.Sprintf("w%d", workers), j.into, func(cfg *consumer.Config) {
			cfg.MaxRecords, cfg.AuditInterval = 9, 30*time.Second
			if what.sink {
				intoSink(s)(cfg)
			}
		})
	}
	var live []*member
	for range what.workers {
		live = append(live, start())
	}
	for range 150 {
		m.grind()
		switch i := c.pick(len(live)); c.pick(14) {
		case 0:
			f.stream.split(c.pick(100))
		case 1, 2:
			f.stream.merge(c.pick(100))
		case 3:
			if what.kills {
				live[i].kill()
				<-live[i].err
				live[i] = start()
			}
		case 4:
			if what.kills {
				time.AfterFunc(m.between(30*time.Second), live[i].link.cut())
			}
		}
		m.turn(m.between(10 * time.Second))
	}
	m.turn(3 * m.horizon)
	faults.mu.Lock()
	faults.calm = true
	faults.mu.Unlock()
	got := func() []runnel.Record {
		if what.sink {
			return s.effects(f)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		return slices.Clone(j.records)
	}
	f.settled(func() int { return len(got()) })
	again := m.check(got())
	if again > 0 && (what.sink || !what.kills) {
		f.Errorf("%d records came again", again)
	}
	if what.workers == 1 {
		f.readAgain() // it has ended all parents
	}
	doubles, _ := f.dropped()
	f.Logf("seed %d: %d shards, %d workers, %d copies of units, %d void, %d records acknowledged, "+
		"%d dropped, %d again", seed, len(f.stream.shards), workers, m.copies, m.voids,
		len(m.acked), doubles, again)
	if doubles == 0 || m.voids == 0 {
		f.Errorf("seed %d: too tame", seed)
	}
}

// settled waits until a number no longer changes.
func (f *fleet) settled(number func() int) {
	last, since := -1, time.Now()
	for time.Since(since) < 6*failover {
		if n := number(); n != last {
			last, since = n, time.Now()
		}
		<-time.After(time.Second)
	}
}
