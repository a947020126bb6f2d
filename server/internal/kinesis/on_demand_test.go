package kinesis

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// load puts some records a second into the i-th of 64 equal ranges, for some seconds.
func (n *node) load(stream string, i, perSecond, seconds int) {
	n.t.Helper()
	records := make([]m, perSecond)
	for j := range records {
		records[j] = record(i, 64, 10)
	}
	for range seconds {
		n.call("PutRecords", m{"StreamName": stream, "Records": records})
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

func (n *node) createOnDemand(name string) {
	n.call("CreateStream", m{"StreamName": name, "StreamModeDetails": m{"StreamMode": catalogue.ModeOnDemand}})
}

// A shard of an on-demand stream is split after writes above half of its limits, and so are its
// halves. A shard below half is not split, nor one of a provisioned stream.
func TestOnDemandScalesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "write-records=100"))
		defer n.stop()
		n.createOnDemand("any")
		n.create("fixed", 4)
		n.load("fixed", 0, 90, 10)
		n.load("any", 0, 50, 10)
		if a, b := len(n.openRanges("any")), len(n.openRanges("fixed")); a != 4 || b != 4 {
			t.Fatalf("there are %d and %d shards, want 4", a, b)
		}
		n.load("any", 0, 51, busySeconds)
		if got := len(n.openRanges("any")); got != 4 {
			t.Fatalf("there are %d shards after %d seconds", got, busySeconds)
		}
		n.load("any", 0, 51, 1)
		if got := len(n.openRanges("any")); got != 5 {
			t.Fatalf("there are %d shards, want 5", got)
		}
		quarter := keyspace.Uniform(4)[0]
		if first := n.openRanges("any")[0]; first.End.Add(keyspace.Key{Lo: 1}) != quarter.Middle() {
			t.Errorf("the first shard has %v, want a half of %v", first, quarter)
		}
		n.load("any", 0, 300, busySeconds+1) // refused ones count
		if got := len(n.openRanges("any")); got != 6 {
			t.Fatalf("there are %d shards, want 6", got)
		}
		checkShape(t, n.list("any"))
		n.SetLimits(nil)
		n.load("any", 0, 300, 2*busySeconds)
		if got := len(n.openRanges("any")); got != 6 {
			t.Fatalf("there are %d shards without limits", got)
		}
	})
}

// A shard that is hot while its stream is UPDATING is found again when the stream is ACTIVE, and
// then split at the end of the next UPDATING.
func TestOnDemandWhileUpdating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "write-records=100"), func(cfg *Config) {
			cfg.StreamDelay = 3 * time.Second
		})
		defer n.stop()
		n.createOnDemand("any")
		time.Sleep(3500 * time.Millisecond)
		n.load("any", 0, 60, busySeconds+1)
		if status := n.status("any"); status != catalogue.StatusUpdating || len(n.openRanges("any")) != 4 {
			t.Fatalf("the stream is %s with %v", status, n.openRanges("any"))
		}
		n.load("any", 0, 60, 3)
		if got := len(n.openRanges("any")); got != 5 {
			t.Fatalf("at the end of UPDATING there are %d shards, want 5", got)
		}
		n.load("any", 0, 60, busySeconds+4)
		if got := len(n.openRanges("any")); got != 6 {
			t.Fatalf("in the end there are %d shards, want 6", got)
		}
	})
}

// A pause ends the row of busy seconds.
func TestOnDemandPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "write-bytes=1000"))
		defer n.stop()
		n.createOnDemand("any")
		for range 4 {
			n.load("any", 0, 60, busySeconds-1) // of 10 bytes each
			time.Sleep(2 * time.Second)
		}
		if got := len(n.openRanges("any")); got != 4 {
			t.Fatalf("there are %d shards", got)
		}
		n.load("any", 0, 60, busySeconds+1)
		if got := len(n.openRanges("any")); got != 5 {
			t.Fatalf("there are %d shards without a pause, want 5", got)
		}
	})
}

// created is the stream as a catalogue holds it after its creation.
func created(t *testing.T, st *catalogue.Stream) *catalogue.Stream {
	t.Helper()
	frame, err := json.Marshal(&catalogue.Change{
		Seq: 1, Op: catalogue.ChangeCreate, At: 1, Stream: st,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := catalogue.New(noStore{})
	if err := c.Replay(0, frame); err != nil {
		t.Fatal(err)
	}
	return c.Get(st.Key())
}

// noStore takes the catalogue's announcements and does nothing.
type noStore struct{}

func (noStore) Create(shardlog.ID) *shardlog.Shard { return nil }
func (noStore) Seal(shardlog.ID) func()            { return func() {} }
func (noStore) Delete(shardlog.ID) func()          { return func() {} }

// Splits end at AWS's maximum, and at narrow shards: a few keys make such a shard hot.
func TestSplitHot(t *testing.T) {
	st := &catalogue.Stream{World: here, Name: "any", Created: 7, Settings: catalogue.Settings{Mode: catalogue.ModeOnDemand}}
	for i, r := range keyspace.Uniform(4) {
		st.Shards = append(st.Shards, &catalogue.Shard{Index: uint32(i), Log: 1, Range: r})
	}
	st = created(t, st)
	var hot []shardKey
	for i := range 4 {
		hot = append(hot, shardKey{here, "any", 7, uint32(i)})
	}
	for _, c := range []struct {
		hot        []shardKey
		most, want int
	}{
		{hot, 200, 4},
		{hot[1:2], 200, 1},
		{hot, 6, 2},
		{hot, 4, 0},
		{[]shardKey{{here, "any", 8, 1}, {here, "any", 7, 9}}, 200, 0},
	} {
		if steps := splitHot(st, c.hot, c.most); len(steps) != c.want {
			t.Errorf("%d hot shards of at most %d: %d splits, want %d",
				len(c.hot), c.most, len(steps), c.want)
		}
	}
	// One key alone: the shard around it halves until it is narrow, and no further.
	ranges := []keyspace.Range{keyspace.All()}
	for range 20 {
		st := &catalogue.Stream{World: here, Name: "any", Created: 7}
		for i, r := range ranges {
			st.Shards = append(st.Shards, &catalogue.Shard{Index: uint32(i), Log: 1, Range: r})
		}
		st = created(t, st)
		key := shardKey{here, "any", 7, st.Route(keyspace.Key{}).Index}
		ranges, _ = take(t, ranges, splitHot(st, []shardKey{key}, 200))
	}
	if len(ranges) != 10 {
		t.Errorf("one hot key makes %d shards", len(ranges))
	}
	if a, b := maxOnDemandShards("us-east-1"), maxOnDemandShards("eu-central-1"); a != 10_000 || b != 200 {
		t.Errorf("the most are %d and %d", a, b)
	}
}
