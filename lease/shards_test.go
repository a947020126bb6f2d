package lease_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// comparison is a scenario of testdata/shards.json. A shard is "a", or "a!" if it is closed, with
// its parents after a "<". A lease is "a", "a$" if it has ended, or "a?" if its row cannot be read.
// A lease to create has its place: the origin's word, or "oldest".
type comparison struct {
	Name         string   `json:"name"`
	Why          string   `json:"why"`
	Shards       string   `json:"shards"`
	Leases       string   `json:"leases"`
	Origin       string   `json:"origin"`
	New          bool     `json:"new"`
	Java         bool     `json:"java"`
	OpenAtOrigin string   `json:"openAtOrigin"`
	AbsentBefore string   `json:"absentBefore"`
	Create       []string `json:"create"`
	Delete       string   `json:"delete"`
	Absent       string   `json:"absent"`
	Holes        bool     `json:"holes"`
}

var (
	madeAt   = time.UnixMilli(1_700_000_000_000).UTC()
	originAt = madeAt.Add(time.Hour)
	nowAt    = madeAt.Add(48 * time.Hour)
)

func (c comparison) view(t *testing.T) lease.ShardView {
	t.Helper()
	v := lease.ShardView{
		Shards: parseShards(c.Shards), Synced: !c.New, Java: c.Java,
		OpenAtOrigin: idsIn(c.OpenAtOrigin), Absent: idsIn(c.AbsentBefore),
		Created: madeAt, Now: nowAt,
	}
	switch c.Origin {
	case "oldest":
	case "latest":
		v.Origin = runnel.FromLatest().Pin(originAt)
	case "time":
		v.Origin = runnel.FromTime(originAt)
	default:
		t.Fatalf("origin %q", c.Origin)
	}
	for _, word := range strings.Fields(c.Leases) {
		id, unreadable := strings.CutSuffix(word, "?")
		if unreadable {
			v.Unreadable = append(v.Unreadable, runnel.ShardID(id))
			continue
		}
		id, ended := strings.CutSuffix(word, "$")
		l := lease.Lease{Key: runnel.ShardID(id)}
		if ended {
			l.Checkpoint = runnel.End()
		}
		v.Leases = append(v.Leases, l)
	}
	return v
}

func parseShards(text string) []runnel.Shard {
	var shards []runnel.Shard
	for _, word := range strings.Fields(text) {
		id, parents, _ := strings.Cut(word, "<")
		s := runnel.Shard{ID: runnel.ShardID(strings.TrimSuffix(id, "!")), First: "1"}
		if strings.HasSuffix(id, "!") {
			s.Last = "9"
		}
		s.Parents = idsIn(strings.ReplaceAll(parents, ",", " "))
		shards = append(shards, s)
	}
	return shards
}

func idsIn(text string) []runnel.ShardID {
	var ids []runnel.ShardID
	for _, word := range strings.Fields(text) {
		ids = append(ids, runnel.ShardID(word))
	}
	return ids
}

func showCreated(t *testing.T, l lease.Lease) string {
	t.Helper()
	text := string(l.Key)
	switch word := l.Checkpoint.Sequence; {
	case word == runnel.TrimHorizon && l.From.IsZero():
		text += " oldest"
	case word == runnel.Latest && l.From.Equal(originAt):
		text += " latest"
	case word == runnel.AtTimestamp && l.From.Equal(originAt):
		text += " time"
	default:
		t.Errorf("created at no place of the scenario: %+v", l)
	}
	switch {
	case l.Complete.Equal(nowAt):
		text += " complete=now"
	case !l.Complete.IsZero() && (l.Complete.Equal(madeAt) || l.Complete.Equal(originAt)):
		text += " complete=created"
	case !l.Complete.IsZero():
		t.Errorf("complete to %s", l.Complete)
	}
	return text
}

func showIDs(ids []runnel.ShardID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, " ")
}

func keysOf(leases []lease.Lease) []runnel.ShardID {
	ids := make([]runnel.ShardID, len(leases))
	for i, l := range leases {
		ids[i] = l.Key
	}
	return ids
}

// The scenarios of testdata/shards.json: the leases created and deleted when a stream's shards are
// compared with the leases of a table.
func TestShardScenarios(t *testing.T) {
	text, err := os.ReadFile("testdata/shards.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []comparison
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if c.Why == "" {
				t.Error("it does not say why")
			}
			v := c.view(t)
			plan := v.Plan()
			created := make([]string, len(plan.Create))
			for i, l := range plan.Create {
				created[i] = showCreated(t, l)
			}
			if !slices.Equal(created, c.Create) {
				t.Errorf("create %q, want %q", created, c.Create)
			}
			if got := showIDs(keysOf(plan.Delete)); got != c.Delete {
				t.Errorf("delete %q, want %q", got, c.Delete)
			}
			if got := showIDs(plan.Absent); got != c.Absent {
				t.Errorf("absent %q, want %q", got, c.Absent)
			}
			if v.Holes() != c.Holes {
				t.Errorf("holes: %v", v.Holes())
			}
			checkShardPlan(t, v, rand.New(rand.NewPCG(1, 1)))
		})
	}
}

// checkShardPlan checks a plan's general properties: it does not depend on the order of the view,
// it creates no lease twice and parents first, it deletes only ended leases that are not listed,
// every open shard is reached afterwards, and the plan after it creates nothing.
func checkShardPlan(t *testing.T, v lease.ShardView, random *rand.Rand) {
	t.Helper()
	plan := v.Plan()
	shuffled := v
	shuffled.Shards, shuffled.Leases = slices.Clone(v.Shards), slices.Clone(v.Leases)
	random.Shuffle(len(v.Shards), func(i, j int) {
		shuffled.Shards[i], shuffled.Shards[j] = shuffled.Shards[j], shuffled.Shards[i]
	})
	random.Shuffle(len(v.Leases), func(i, j int) {
		shuffled.Leases[i], shuffled.Leases[j] = shuffled.Leases[j], shuffled.Leases[i]
	})
	if again := shuffled.Plan(); !reflect.DeepEqual(again, plan) {
		t.Fatalf("%+v\nplanned as %+v\nand, in another order, as %+v", v, plan, again)
	}
	after, isThere := v, map[runnel.ShardID]bool{}
	after.Leases = slices.Clone(v.Leases)
	for _, id := range append(keysOf(v.Leases), v.Unreadable...) {
		isThere[id] = true
	}
	for i, l := range plan.Create {
		if isThere[l.Key] || l.Owner != "" || l.Origin == nil || *l.Origin != v.Origin {
			t.Fatalf("%+v\ncreates %+v", v, l)
		}
		isThere[l.Key] = true
		for _, later := range plan.Create[i+1:] {
			if slices.Contains(l.Parents, later.Key) {
				t.Fatalf("%s is created before its parent %s", l.Key, later.Key)
			}
		}
		after.Leases = append(after.Leases, l)
	}
	for _, l := range plan.Delete {
		listed := slices.ContainsFunc(v.Shards, func(s runnel.Shard) bool { return s.ID == l.Key })
		if listed || !l.Ended() || len(v.Shards) == 0 || v.Java || !slices.Contains(v.Absent, l.Key) {
			t.Fatalf("%+v\ndeletes %s", v, l.Key)
		}
	}
	if after.Holes() {
		t.Fatalf("%+v\nleaves holes after %+v", v, plan)
	}
	if again := after.Plan(); len(again.Create) > 0 {
		t.Fatalf("%+v\ncreates %v, and then %v", v, keysOf(plan.Create), keysOf(again.Create))
	}
}

// Random streams with random rows missing keep the general properties.
func TestShardPlanProperties(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 5))
		shards := randomStream(random)
		v := lease.ShardView{
			Synced: random.IntN(3) > 0, Java: random.IntN(4) == 0, Created: madeAt, Now: nowAt,
			Origin: []runnel.From{
				{}, runnel.FromLatest().Pin(originAt), runnel.FromTime(originAt),
			}[random.IntN(3)],
		}
		forgotten := random.IntN(len(shards))
		for i, s := range shards {
			if i >= forgotten || s.Open() {
				v.Shards = append(v.Shards, s)
			}
			if random.IntN(3) == 0 {
				v.OpenAtOrigin = append(v.OpenAtOrigin, s.ID)
			}
			if random.IntN(4) == 0 {
				v.Absent = append(v.Absent, s.ID)
			}
			l := lease.Lease{Key: s.ID}
			if !s.Open() && random.IntN(2) == 0 {
				l.Checkpoint = runnel.End()
			}
			switch random.IntN(5) {
			case 0, 1:
				v.Leases = append(v.Leases, l)
			case 2:
				if random.IntN(3) == 0 {
					v.Unreadable = append(v.Unreadable, s.ID)
				}
			}
		}
		checkShardPlan(t, v, random)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomStream returns the shards of a stream after some splits and merges.
func randomStream(random *rand.Rand) []runnel.Shard {
	var shards []runnel.Shard
	add := func(parents ...runnel.ShardID) {
		id := runnel.ShardID(fmt.Sprintf("shardId-%012d", len(shards)))
		shards = append(shards, runnel.Shard{ID: id, Parents: parents, First: "1"})
	}
	for range 1 + random.IntN(3) {
		add()
	}
	for range random.IntN(8) {
		var open []int
		for i, s := range shards {
			if s.Open() {
				open = append(open, i)
			}
		}
		i := random.IntN(len(open))
		first := open[i]
		shards[first].Last = "9"
		if random.IntN(2) == 0 || len(open) < 2 {
			add(shards[first].ID)
			add(shards[first].ID)
			continue
		}
		second := open[(i+1)%len(open)]
		shards[second].Last = "9"
		add(shards[first].ID, shards[second].ID)
	}
	return shards
}
