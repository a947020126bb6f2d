package catalogue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Consumers survive a restart, and are the same from frames and from snapshots.
func TestConsumersReplay(t *testing.T) {
	changes := history()[:2]
	add := func(at int64, c Consumer) {
		changes = append(changes, &Change{
			Seq: uint64(len(changes) + 1), Op: ChangeConsumer, At: at, World: &home,
			Name: "orders", Consumer: &c,
		})
	}
	add(3000, Consumer{Name: "b", Created: 3000, Phase: StatusCreating, Until: 4000})
	add(3001, Consumer{Name: "a", Created: 3001, Tags: map[string]string{"k": "v"}})
	add(3002, Consumer{Name: "b", Created: 3000, Phase: StatusDeleting, Until: 3500})
	add(3600, Consumer{Name: "c", Created: 3600, Policy: "{}"})
	add(5000, Consumer{Name: "d", Created: 5000}) // b is forgotten
	c := New(new(ledger))
	replay(t, c, changes)
	state := freeze(t, c)
	if names := fmt.Sprint(consumerNames(c)); names != "[a c d]" {
		t.Errorf("there are %s", names)
	}
	for cut := range len(changes) + 1 {
		first, second := New(new(ledger)), New(new(ledger))
		replay(t, first, changes[:cut])
		if err := second.Restore([]byte(freeze(t, first))); err != nil {
			t.Fatal(err)
		}
		replay(t, second, changes[max(0, cut-2):])
		if got := freeze(t, second); got != state {
			t.Errorf("a snapshot after change %d leads to\n%s\nwant\n%s", cut, got, state)
		}
	}
	for _, bad := range []string{
		`[null]`, `[{"name":"b"},{"name":"a"}]`, `[{"name":"a"},{"name":"a"}]`, `[{"name":""}]`,
	} {
		broken := strings.Replace(state, `"consumers":[`, `"consumers":`+bad+`,"none":[`, 1)
		if err := New(new(ledger)).Restore([]byte(broken)); err == nil {
			t.Errorf("a snapshot with the consumers %s is taken", bad)
		}
	}
	for _, bad := range []*Consumer{nil, {Name: ""}, {Name: "a b"}} {
		frame, _ := json.Marshal(&Change{
			Seq: c.state.Seq + 1, Op: ChangeConsumer, At: 1, World: &home, Name: "orders", Consumer: bad,
		})
		if err := c.Replay(0, frame); err == nil || freeze(t, c) != state {
			t.Errorf("the change to %v is taken", bad)
		}
	}
}

func consumerNames(c *Catalogue) (names []string) {
	for _, consumer := range c.streams[Key{home, "orders"}].Consumers {
		names = append(names, consumer.Name)
	}
	return names
}
