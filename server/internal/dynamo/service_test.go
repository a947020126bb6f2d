package dynamo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// exchange is a call and its answer. An answer that ends with … is only the beginning, and an
// error only a part of the answer.
type exchange struct{ operation, body, answer string }

func run(t *testing.T, s *Service, exchanges []exchange) {
	t.Helper()
	for _, e := range exchanges {
		got := s.ask(t, e.operation, e.body)
		begin, isBegin := strings.CutSuffix(e.answer, "…")
		switch {
		case isBegin && strings.HasPrefix(got, begin), got == e.answer:
		case !isBegin && !strings.HasPrefix(e.answer, "{") && strings.Contains(got, e.answer):
		default:
			t.Errorf("%s %s\n got %s\nwant %s", e.operation, e.body, got, e.answer)
		}
	}
}

// TestConditionalIncrements has workers race for one counter by compare-and-swap: each number
// is won exactly once.
func TestConditionalIncrements(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"n":{"N":"0"}}}`)
	const workers, until = 8, 200
	var group sync.WaitGroup
	won := make([]int, until)
	var mu sync.Mutex
	for range workers {
		group.Go(func() {
			for seen := 0; seen < until; seen++ {
				body := fmt.Sprintf(`{"TableName":"leases","Key":{"leaseKey":{"S":"a"}},
					"ConditionExpression":"n = :seen","UpdateExpression":"ADD n :one",
					"ExpressionAttributeValues":{":seen":{"N":"%d"},":one":{"N":"1"}}}`, seen)
				if got := s.ask(t, "UpdateItem", body); got == `{}` {
					mu.Lock()
					won[seen]++
					mu.Unlock()
				} else if !strings.HasPrefix(got, "ConditionalCheckFailedException") {
					t.Error(got)
				}
			}
		})
	}
	group.Wait()
	for n, times := range won {
		if times != 1 {
			t.Errorf("%d was won %d times", n, times)
		}
	}
}

// TestAcknowledgedWritesSurviveACrash loses the power after answers.
func TestAcknowledgedWritesSurviveACrash(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := vfs.NewCrashable()
	s := newService(t, fs, "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	for i := range 10 {
		s.mustAsk(t, "PutItem",
			fmt.Sprintf(`{"TableName":"leases","Item":{"leaseKey":{"S":"k%d"},"n":{"N":"0"}}}`, i))
		s.mustAsk(t, "UpdateItem", fmt.Sprintf(`{"TableName":"leases","Key":{"leaseKey":{"S":"k%d"}},
			"UpdateExpression":"SET n = n + :i","ExpressionAttributeValues":{":i":{"N":"%d"}}}`, i, i))
		after := newService(t, fs.Crash(rng), "data")
		for j := range i + 1 {
			got := after.mustAsk(t, "GetItem",
				fmt.Sprintf(`{"TableName":"leases","Key":{"leaseKey":{"S":"k%d"}}}`, j))
			want := fmt.Sprintf(`{"Item":{"leaseKey":{"S":"k%d"},"n":{"N":"%d"}}}`, j, j)
			if got != want {
				t.Fatalf("seed %d: %s, want %s", seed, got, want)
			}
		}
	}
}

// TestFailedDiskIsNoAnswer fails a sync: the write is neither acknowledged nor visible.
func TestFailedDiskIsNoAnswer(t *testing.T) {
	armed := false
	var mu sync.Mutex
	fs := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if armed && op.Kind == vfs.OpSync {
			return vfs.ErrInjected
		}
		return nil
	})
	log, err := wal.Open(wal.Config{FS: fs, Dir: "data", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Items: itemstore.New(itemstore.Config{Log: log}), Now: time.Now, Logger: quiet})
	if err := log.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustAsk(t, "CreateTable", leaseTable)
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"before"}}}`)
	mu.Lock()
	armed = true
	mu.Unlock()
	var poisoned *wal.PoisonedError
	put := `{"TableName":"leases","Item":{"leaseKey":{"S":"after"}}}`
	if _, err := s.Serve(t.Context(), call("PutItem", put)); !errors.As(err, &poisoned) {
		t.Errorf("put: %v", err)
	}
	get := `{"TableName":"leases","Key":{"leaseKey":{"S":"after"}}}`
	if answer, err := s.Serve(t.Context(), call("GetItem", get)); !errors.As(err, &poisoned) {
		t.Errorf("get: %s, %v", answer, err)
	}
	if got := s.ask(t, "GetItem", strings.Replace(get, "after", "before", 1)); got != `{"Item":{"leaseKey":{"S":"before"}}}` {
		t.Errorf("durable: %s", got)
	}
	if err := log.Close(t.Context()); err == nil {
		t.Error("closed as if nothing had happened")
	}
}
