package kinesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

// story is a random life of a data directory: streams come and go, shards are split and merged,
// records are put, and power fails now and then, also during calls. It keeps the acknowledged data
// and checks that all of it is there, once, in order.
type story struct {
	t       *testing.T
	rng     *rand.Rand
	clock   *testClock
	delay   time.Duration // of UPDATING and the other states
	n       *node
	streams map[string]*told
	serial  int
}

// told holds a stream's writes and the answers to them.
type told struct {
	acked  map[string]string // data -> shard and number
	sent   map[string]bool   // every data that was sent, acknowledged or not
	shards int               // at least so many were there
}

func TestCrashes(t *testing.T) {
	for seed := range uint64(5 * soak()) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := &story{
				t: t, rng: rand.New(rand.NewPCG(seed, 7)), streams: map[string]*told{},
				clock: newTestClock(), delay: []time.Duration{time.Second, -1}[seed%2],
			}
			s.start(vfs.NewCrashable())
			for range 120 {
				s.step()
			}
			s.check()
		})
	}
	t.Logf("soak: %d seeds, %d operations", 5*soak(), 5*soak()*120)
}

func (s *story) start(fs vfs.FS) {
	s.n = startNode(s.t, fs, at(s.clock), func(cfg *Config) { cfg.StreamDelay = s.delay })
	s.n.settle() // overdue changes must not happen between two looks
}

// settle lets the passing states end, with their pending changes.
func (s *story) settle() {
	s.clock.advance(time.Second)
	s.n.settle()
}

func (s *story) step() {
	switch r := s.rng.IntN(100); {
	case r < 8:
		s.create()
	case r < 60:
		s.put()
	case r < 84:
		s.reshard()
	case r < 87:
		s.remove()
	case r < 92:
		s.check()
	default:
		s.crash()
	}
}

func (s *story) create() {
	name := fmt.Sprint("stream-", s.rng.IntN(3))
	shards := 1 + s.rng.IntN(4)
	_, err := s.n.try("CreateStream", m{"StreamName": name, "ShardCount": shards})
	if s.streams[name] != nil {
		wantError(s.t, err, codeInUse, "already exists")
		return
	}
	s.n.must(err)
	s.settle()
	s.streams[name] = &told{acked: map[string]string{}, sent: map[string]bool{}, shards: shards}
}

func (s *story) pick() (string, *told) {
	for name, st := range s.streams {
		return name, st
	}
	s.create()
	return s.pick()
}

func (s *story) remove() {
	name, _ := s.pick()
	s.settle()
	s.n.call("DeleteStream", m{"StreamName": name})
	s.settle()
	delete(s.streams, name)
}

// batch is a request of a few records with distinct data.
func (s *story) batch(name string, st *told) (m, []string) {
	var records []m
	var data []string
	for range 1 + s.rng.IntN(8) {
		s.serial++
		key := keyspace.Key{Hi: s.rng.Uint64(), Lo: s.rng.Uint64()}.String()
		text := fmt.Sprint(s.serial)
		st.sent[text] = true
		data = append(data, text)
		records = append(records, m{"PartitionKey": "k", "Data": []byte(text), "ExplicitHashKey": key})
	}
	return m{"StreamName": name, "Records": records}, data
}

func (st *told) note(answer m, data []string) {
	for i, result := range answer["Records"].([]any) {
		r := result.(m)
		st.acked[data[i]] = fmt.Sprint(r["ShardId"], " ", r["SequenceNumber"])
	}
}

func (s *story) put() {
	name, st := s.pick()
	in, data := s.batch(name, st)
	st.note(s.n.call("PutRecords", in), data)
}

func (s *story) reshard() {
	name, st := s.pick()
	if s.rng.IntN(2) == 0 {
		s.settle()
	}
	if _, err := s.n.try(s.randomReshard(name)); err == nil {
		if s.rng.IntN(2) == 0 {
			s.settle()
		}
		st.shards = len(s.n.list(name))
	} else if wire := new(wire.Error); !errors.As(err, &wire) {
		s.t.Fatal(err)
	}
}

// randomReshard returns a split, a merge or a scaling that is likely to be possible.
func (s *story) randomReshard(name string) (operation string, in m) {
	shards := s.n.list(name)
	sh := shards[s.rng.IntN(len(shards))]
	if s.rng.IntN(4) == 0 {
		open := len(s.n.openRanges(name))
		return "UpdateShardCount", scaleTo(name, max(1, open/2)+s.rng.IntN(open+1))
	}
	if s.rng.IntN(2) == 0 {
		start, _ := keyspace.Parse(sh.HashKeyRange.StartingHashKey)
		end, _ := keyspace.Parse(sh.HashKeyRange.EndingHashKey)
		middle := keyspace.Range{Start: start, End: end}.Middle()
		return "SplitShard", m{
			"StreamName": name, "ShardToSplit": sh.ShardId,
			"NewStartingHashKey": middle.String(),
		}
	}
	other := shards[s.rng.IntN(len(shards))]
	return "MergeShards", m{
		"StreamName": name, "ShardToMerge": sh.ShardId,
		"AdjacentShardToMerge": other.ShardId,
	}
}

// crash cuts the power during puts and a resharding, and checks the remaining state.
func (s *story) crash() {
	name, st := s.pick()
	operation, reshard := s.randomReshard(name)
	var mu sync.Mutex
	var calls sync.WaitGroup
	over := false
	for range s.rng.IntN(4) {
		in, data := s.batch(name, st)
		calls.Go(func() {
			out, err := s.n.try("PutRecords", in)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !over { // acknowledged before the power went
				st.note(out, data)
			}
		})
	}
	calls.Go(func() { _, _ = s.n.try(operation, reshard) })
	for range s.rng.IntN(3) { // let some of it happen, or not
		s.n.list(name)
		if s.delay > 0 && s.rng.IntN(2) == 0 {
			s.clock.advance(time.Second)
			calls.Go(func() { _, _, _ = s.n.resharder.carryOut(s.n.ctx) })
		}
	}
	mu.Lock()
	over = true
	left := s.n.fs.(*vfs.Mem).Crash(s.rng)
	mu.Unlock()
	calls.Wait()
	s.n.stop()
	s.start(left)
	s.check()
	// From here on the surviving records count as acknowledged.
	for name, st := range s.streams {
		for data, at := range s.read(name, st) {
			st.acked[data] = at
		}
	}
}

// check compares all readable data with all acknowledged data.
func (s *story) check() {
	s.t.Helper()
	names := s.n.call("ListStreams", m{})["StreamNames"].([]any)
	if len(names) != len(s.streams) {
		s.t.Fatalf("there are the streams %v, want %d", names, len(s.streams))
	}
	for name, st := range s.streams {
		shards := s.n.list(name)
		checkShape(s.t, shards)
		if len(shards) < st.shards {
			s.t.Fatalf("%s has %d shards, there were %d", name, len(shards), st.shards)
		}
		read := s.read(name, st)
		for data, at := range st.acked {
			if read[data] != at {
				s.t.Fatalf("%s: record %s was acknowledged at %s and is at %q", name, data, at, read[data])
			}
		}
	}
}

// read returns everything in a stream as data -> shard and number.
func (s *story) read(name string, st *told) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, sh := range s.n.list(name) {
		records, last := s.n.drain(name, sh.ShardId)
		closed := sh.SequenceNumberRange.EndingSequenceNumber != ""
		if closed != (last.NextShardIterator == "") || closed != (len(last.ChildShards) > 0) {
			s.t.Fatalf("%s: %s is closed: %v, and reading it ends with %+v", name, sh.ShardId, closed, last)
		}
		before := sh.SequenceNumberRange.StartingSequenceNumber
		for _, r := range records {
			if r.SequenceNumber <= before {
				s.t.Fatalf("%s: %s has %s after %s", name, sh.ShardId, r.SequenceNumber, before)
			}
			before = r.SequenceNumber
			data := string(r.Data)
			if !st.sent[data] || all[data] != "" {
				s.t.Fatalf("%s: record %q is there twice, or was never sent", name, data)
			}
			all[data] = sh.ShardId + " " + r.SequenceNumber
		}
		if end := sh.SequenceNumberRange.EndingSequenceNumber; closed && end <= before {
			s.t.Fatalf("%s: %s ends at %s, before its last record %s", name, sh.ShardId, end, before)
		}
	}
	return all
}
