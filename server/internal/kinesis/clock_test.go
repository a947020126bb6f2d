package kinesis

import (
	"log/slog"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

func TestClockNeverStepsBack(t *testing.T) {
	ms := int64(5000)
	c := clock{serverclock.New(serverclock.Config{
		Wall:   func() time.Time { return time.UnixMilli(ms) },
		Logger: slog.New(slog.DiscardHandler),
	})}
	for _, step := range []struct{ system, floor, want int64 }{
		{5000, 0, 5000}, {4000, 0, 5000}, {6000, 0, 6000}, {6000, 9000, 9000}, {7000, 8000, 9000},
	} {
		ms = step.system
		c.notBefore(step.floor)
		if got := c.read().Stamp; got != step.want {
			t.Errorf("at %d, not before %d, the clock reads %d, want %d",
				step.system, step.floor, got, step.want)
		}
	}
}

// No step of the system's clock, to either side, makes a state, an iterator, a page or the pause
// between subscriptions longer or shorter.
func TestDurationsIgnoreSteps(t *testing.T) {
	for _, by := range []time.Duration{
		50 * time.Minute, -50 * time.Minute, 2 * time.Hour, 9000 * time.Hour, -9000 * time.Hour,
	} {
		t.Run(by.String(), func(t *testing.T) {
			clock := newTestClock()
			n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
			n.call("CreateStream", m{"StreamName": "orders", "ShardCount": 1})
			clock.step(by)
			clock.advance(999 * time.Millisecond)
			if got := n.status("orders"); got != "CREATING" {
				t.Errorf("the stream is %s after 0.999 s", got)
			}
			clock.advance(time.Millisecond)
			if got := n.status("orders"); got != "ACTIVE" {
				t.Errorf("the stream is %s after 1 s", got)
			}
			first, second := n.register("orders", "first"), n.register("orders", "second")
			clock.advance(time.Second)
			n.subscribe(first, "0", fromLatest)
			iterator := n.iterator("orders", "0", "LATEST")
			in := m{"StreamARN": ordersARN, "MaxResults": 1}
			token := n.call("ListStreamConsumers", in)["NextToken"]
			clock.step(-by)
			n.call("DeregisterStreamConsumer", m{"ConsumerARN": second})
			clock.step(by)
			n.register("orders", "third")
			want := "first ACTIVE, second DELETING, third CREATING"
			if got := n.consumers("orders"); got != want {
				t.Errorf("there are %s, want %s", got, want)
			}
			clock.advance(4999 * time.Millisecond)
			n.notSubscribed(first, "0", fromLatest, codeInUse, "")
			clock.advance(time.Millisecond)
			n.subscribe(first, "0", fromLatest)
			clock.advance(iteratorLife*time.Millisecond - 5*time.Second)
			n.get(iterator, 0)
			n.call("ListStreamConsumers", m{"StreamARN": ordersARN, "NextToken": token})
			clock.advance(time.Millisecond)
			n.refused("GetRecords", m{"ShardIterator": iterator}, codeExpired, "")
			n.refused("ListStreamConsumers", m{"StreamARN": ordersARN, "NextToken": token},
				codeExpiredToken, "")
		})
	}
}
