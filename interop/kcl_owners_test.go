package interop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// change is a lease's change of its owner.
type change struct {
	shard    string
	from, to string // "" for none
	at       time.Time
}

func (c change) String() string {
	return fmt.Sprintf("%s from %q to %q at %s", c.shard, c.from, c.to, c.at.Format("15:04:05.0"))
}

// history has the changes of owners in a lease table.
type history struct {
	mu      sync.Mutex
	changes []change
	now     map[string]string // the owners of leases that have not ended
	began   time.Time
}

// watchOwners looks at the table ten times a second, until the test's end.
func (f *fleet) watchOwners() *history {
	h := &history{now: map[string]string{}, began: time.Now()}
	done := make(chan struct{})
	var group sync.WaitGroup
	f.t.Cleanup(func() {
		close(done)
		group.Wait()
	})
	group.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			out, err := f.items.Scan(f.ctx, &dynamodb.ScanInput{
				TableName: &f.app, ConsistentRead: aws.Bool(true),
			})
			if err == nil { // the first worker makes the table
				h.look(out.Items, time.Now())
			}
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	return h
}

func (h *history) look(items []map[string]dynamotypes.AttributeValue, now time.Time) {
	text := func(item map[string]dynamotypes.AttributeValue, name string) string {
		if s, ok := item[name].(*dynamotypes.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	owners := map[string]string{}
	for _, item := range items {
		shard := text(item, "leaseKey")
		if !strings.HasPrefix(shard, "shardId-") || text(item, "checkpoint") == "SHARD_END" {
			continue
		}
		owners[shard] = text(item, "leaseOwner")
		if from := h.now[shard]; from != owners[shard] {
			h.changes = append(h.changes, change{shard, from, owners[shard], now})
		}
	}
	h.now = owners
}

// owners returns how many leases that have not ended each worker has.
func (h *history) owners() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]int{}
	for _, owner := range h.now {
		counts[owner]++
	}
	return counts
}

// last returns the last change; at first one without a shard.
func (h *history) last() change {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.changes) == 0 {
		return change{at: h.began}
	}
	return h.changes[len(h.changes)-1]
}

// before returns the change that gave a shard to a worker, and the owner before it; ok is false if
// there is none up to a time.
func (h *history) before(shard, worker string, at time.Time) (from string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.changes {
		switch {
		case c.shard != shard || c.at.After(at):
		case c.to == worker:
			ok = true
		case c.to != "":
			from, ok = c.to, false
		}
	}
	return from, ok
}

// causes counts the repeated records by the event that explains them, and reports the others. A
// record comes again if its shard's owner died, or was robbed, since the last checkpoint. A worker
// that was robbed may also go on for a moment, with records that the robber has delivered.
func (m *mixedFleet) causes() {
	m.t.Helper()
	byName := map[string]*worker{}
	for _, w := range m.workers {
		byName[w.name] = w
	}
	counts := map[string]int{}
	for _, r := range m.read.again {
		from, ok := m.history.before(r.shard, r.worker, r.at.Add(time.Second))
		robber := r.worker
		if !ok { // it is no longer the owner
			robber, from = from, r.worker
		}
		cause := causeOf(byName[from], byName[robber])
		if cause == "" {
			m.t.Errorf("%s delivered record %s of %s in %s again, without a cause: taken by %q from %q",
				r.worker, r.data, r.key, r.shard, robber, from)
			continue
		}
		counts[cause]++
	}
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		m.t.Logf("%d records came again: %s", counts[cause], cause)
	}
}

// causeOf explains repeated records of a shard that one worker took from another.
func causeOf(from, by *worker) string {
	if from == nil || by == nil || from == by {
		return ""
	}
	java := func(w *worker) bool { return strings.HasPrefix(w.name, "java") }
	language := map[bool]string{true: "Java", false: "Go"}
	from.mu.Lock()
	defer from.mu.Unlock()
	switch {
	case from.killed:
		return fmt.Sprintf("a %s worker was killed", language[java(from)])
	case java(from) || java(by):
		return fmt.Sprintf("a %s worker robbed a %s worker", language[java(by)],
			language[java(from)])
	default:
		return "" // Go passes to Go
	}
}

// TestCauses checks the explanations on a history.
func TestCauses(t *testing.T) {
	at := time.Now()
	h := &history{now: map[string]string{}, changes: []change{
		{"s", "", "go-1", at},
		{"s", "go-1", "java-1", at.Add(time.Second)},
		{"s", "java-1", "", at.Add(2 * time.Second)},
		{"s", "", "go-2", at.Add(3 * time.Second)},
	}}
	for _, c := range []struct {
		worker string
		after  time.Duration
		from   string
		ok     bool
	}{
		{"go-1", 0, "", true},
		{"java-1", time.Second, "go-1", true},
		{"go-1", 1500 * time.Millisecond, "java-1", false}, // after it was robbed
		{"go-2", 4 * time.Second, "java-1", true},
		{"go-3", 4 * time.Second, "go-2", false},
	} {
		from, ok := h.before("s", c.worker, at.Add(c.after))
		if from != c.from || ok != c.ok {
			t.Errorf("%s after %s: from %q, %v; want %q, %v", c.worker, c.after, from, ok, c.from,
				c.ok)
		}
	}
	w := func(name string, killed bool) *worker { return &worker{name: name, killed: killed} }
	for _, c := range []struct {
		from, by *worker
		want     string
	}{
		{w("java-1", true), w("go-1", false), "a Java worker was killed"},
		{w("go-1", true), w("go-2", false), "a Go worker was killed"},
		{w("go-1", false), w("java-1", false), "a Java worker robbed a Go worker"},
		{w("java-1", false), w("go-1", false), "a Go worker robbed a Java worker"},
		{w("go-1", false), w("go-2", false), ""},
		{nil, w("go-2", false), ""},
	} {
		if got := causeOf(c.from, c.by); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
