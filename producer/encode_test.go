package producer_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// units is a journal that keeps the units in memory.
type units struct {
	mu  sync.Mutex
	all []producer.FrozenUnit
}

func (u *units) Frozen(_ context.Context, frozen []producer.FrozenUnit) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, frozen...)
	return nil
}

func (*units) Settled([]producer.SettledUnit) {}

// A unit that is made again from its identity and its records has the bytes that were sent.
func TestEncodeUnit(t *testing.T) {
	for _, order := range []producer.Order{producer.OrderKey, producer.OrderShard} {
		t.Run(order.String(), func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", 2))
			journal := &units{}
			p, err := producer.New(t.Context(), producer.Config{
				Stream: "s", Kinesis: server.Kinesis(), Reader: server.Kinesis(), Order: order,
				Journal: journal,
			})
			if err != nil {
				t.Fatal(err)
			}
			records := map[uint64]runnel.Record{}
			for n := range uint64(500) {
				record := runnel.Record{
					PartitionKey: fmt.Sprint("k", n%7), Data: fmt.Appendf(nil, "%0*d", n%50, n),
				}
				if n%7 == 3 {
					record.ExplicitHashKey = "17"
				}
				records[n] = record
				if err := p.PutMarked(t.Context(), record, n, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			packed := 0
			for _, unit := range journal.all {
				var of []runnel.Record
				for _, mark := range unit.Marks {
					of = append(of, records[mark])
				}
				packed += len(of)
				if data, err := producer.EncodeUnit(unit.Unit, of); err != nil ||
					!bytes.Equal(data, unit.Data) {
					t.Errorf("unit %d of %d records differs: %v", unit.Unit.Number, len(of), err)
				}
			}
			if packed != 500 || len(journal.all) == 500 {
				t.Errorf("%d records in %d units", packed, len(journal.all))
			}
			other := []runnel.Record{records[0], records[1]}
			if _, err := producer.EncodeUnit(journal.all[0].Unit, other); err == nil {
				t.Error("records of two keys were packed")
			}
			if _, err := producer.EncodeUnit(journal.all[0].Unit, nil); err == nil {
				t.Error("a unit of nothing was packed")
			}
		})
	}
}
