package producer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// countingKeys is a Keys that gives every key except "none" the hash key 7, and counts its calls.
type countingKeys struct {
	mu           sync.Mutex
	asked, inUse int
}

var errNoKey = errors.New("no key")

func (k *countingKeys) Use(_ context.Context, key string) (string, func(), error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked++; key == "none" {
		return "", nil, errNoKey
	}
	k.inUse++
	return "7", func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.inUse--
	}, nil
}

func (k *countingKeys) counts() (asked, inUse int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked, k.inUse
}

// Records without an explicit hash key get one from Keys, which is in use until their callback has
// returned. Other records keep theirs.
func TestKeys(t *testing.T) {
	keys, hold := &countingKeys{}, make(chan struct{})
	client := &stream{}
	p, err := New(t.Context(), Config{
		Stream: "orders", Kinesis: client, Keys: keys, Order: OrderPlain,
		OnResult: func(r runnel.Record, _ Result) {
			if want := map[string]string{"a": "7", "b": "9"}[r.PartitionKey]; r.ExplicitHashKey != want {
				t.Errorf("%s has %s", r.PartitionKey, r.ExplicitHashKey)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(r runnel.Record) error {
		return p.PutFunc(t.Context(), r, func(Result) { <-hold })
	}
	if err := errors.Join(put(runnel.Record{PartitionKey: "a"}),
		put(runnel.Record{PartitionKey: "b", ExplicitHashKey: "9"})); err != nil {
		t.Fatal(err)
	}
	if asked, inUse := keys.counts(); asked != 1 || inUse != 1 {
		t.Errorf("asked %d times, %d in use", asked, inUse)
	}
	close(hold)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, inUse := keys.counts(); inUse != 0 {
		t.Errorf("%d in use", inUse)
	}
	// A key is not in use if its record was not taken.
	if err := put(runnel.Record{PartitionKey: "none"}); !errors.Is(err, errNoKey) ||
		!strings.Contains(err.Error(), "stream orders") {
		t.Errorf("got %v", err)
	}
	if err := put(runnel.Record{PartitionKey: ""}); !errors.Is(err, ErrInvalidPartitionKey) {
		t.Errorf("got %v", err)
	}
	if asked, _ := keys.counts(); asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	if err := put(runnel.Record{PartitionKey: "a", Data: make([]byte, 2<<20)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := put(runnel.Record{PartitionKey: "a"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, inUse := keys.counts(); inUse != 0 {
		t.Errorf("%d in use", inUse)
	}
}

// The key of a record that Close gives up is not in use any more.
func TestKeysAbandoned(t *testing.T) {
	keys := &countingKeys{}
	p, err := New(t.Context(), Config{
		Stream: "orders", Keys: keys, Order: OrderPlain,
		Kinesis: &stream{latency: 1 << 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.PutFunc(t.Context(), runnel.Record{PartitionKey: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(ended); err == nil {
		t.Error("Close left nothing")
	}
	if _, inUse := keys.counts(); inUse != 0 {
		t.Errorf("%d in use", inUse)
	}
}

// An aggregated record gets no key from Keys: readers expect it in the shard of the keys in it.
func TestKeysOfAggregates(t *testing.T) {
	keys := &countingKeys{}
	p, err := New(t.Context(), Config{
		Stream: "orders", Kinesis: &stream{}, Keys: keys, Order: OrderPlain,
		OnResult: func(r runnel.Record, _ Result) {
			if r.ExplicitHashKey != "" {
				t.Errorf("an aggregate has the hash key %s", r.ExplicitHashKey)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var e aggregate.Encoder
	if err := e.Add(aggregate.Record{PartitionKey: "a", Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	whole := runnel.Record{PartitionKey: "a", Data: e.Seal(nil)}
	if err := p.PutFunc(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	closeNow(t, p, t.Context())
	if asked, _ := keys.counts(); asked > 0 {
		t.Errorf("asked %d times for the key of an aggregate", asked)
	}
}
