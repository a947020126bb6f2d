package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

func TestParseOrder(t *testing.T) {
	for _, o := range []Order{OrderKey, OrderPlain, OrderChained, OrderNone, OrderShard} {
		if got, err := ParseOrder(o.String()); err != nil || got != o {
			t.Errorf("ParseOrder(%v) = %v, %v", o, got, err)
		}
	}
	for _, word := range []string{"", "Key", "shards", "Order(7)"} {
		if _, err := ParseOrder(word); !errors.Is(err, ErrUnknownOrder) {
			t.Errorf("ParseOrder(%q): %v", word, err)
		}
	}
	if got := Order(7).String(); got != "Order(7)" {
		t.Error(got)
	}
}

// openUnits is open with OrderKey.
func (s *stream) openUnits(tb testing.TB, set func(*Config)) (*Producer, context.Context) {
	tb.Helper()
	return s.open(tb, func(c *Config) {
		c.Order = OrderKey
		if set != nil {
			set(c)
		}
	})
}

// put puts a record, and ends the test on an error.
func put(tb testing.TB, p *Producer, ctx context.Context, r runnel.Record, done func(Result)) {
	tb.Helper()
	if err := p.PutFunc(ctx, r, done); err != nil {
		tb.Fatal(err)
	}
}

// The backlog of a busy key takes one call for each MaxUnitBytes, not one for each record. Each
// record has its own result, with its index in the unit.
func TestBacklogBecomesOneUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 20 * time.Millisecond}
		p, ctx := s.openUnits(t, nil)
		const records = 10_000
		places := map[string]int{}
		for i := range records {
			put(t, p, ctx, runnel.Record{
				PartitionKey: "hot", Data: fmt.Appendf(nil, "%d %0200d", i+1, 0),
			}, func(r Result) { places[r.Position.String()]++ })
		}
		closeNow(t, p, ctx)
		size := 0
		for _, data := range s.data {
			size = max(size, len(data)+len("hot"))
		}
		least := records * 205 / (256 << 10)
		if s.calls < least || s.calls > least+4 || size > 256<<10 || s.inOrder(t) != 0 {
			t.Errorf("%d calls, want some %d; the largest unit has %d bytes", s.calls, least, size)
		}
		if stats := p.Stats(); len(places) != records || stats.Units != uint64(s.calls) ||
			stats.Delivered != records {
			t.Errorf("%d places, %+v", len(places), stats)
		}
	})
}

// A single record is also sent as a unit with an identity of the producer. The explicit hash key is
// in the unit and on the Kinesis record. An aggregate is sent unchanged.
func TestSingleRecordsHaveAnIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{}
		hashes := map[string]string{}
		s.fault = func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
			for _, r := range in.Records {
				if r.ExplicitHashKey != nil {
					hashes[*r.PartitionKey] = *r.ExplicitHashKey
				}
			}
			return false, nil
		}
		p, ctx := s.openUnits(t, nil)
		put(t, p, ctx, runnel.Record{PartitionKey: "a", Data: []byte("1"), ExplicitHashKey: "7"}, nil)
		var e aggregate.Encoder
		if err := e.Add(aggregate.Record{PartitionKey: "inner", Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		whole := string(e.Seal(nil))
		put(t, p, ctx, runnel.Record{PartitionKey: "b", Data: []byte(whole)}, nil)
		put(t, p, ctx, runnel.Record{PartitionKey: "b", Data: []byte("1")}, nil)
		closeNow(t, p, ctx)
		var d aggregate.Decoder
		for i, key := range s.keys {
			if s.data[i] == whole {
				continue
			}
			if !d.Open([]byte(s.data[i])) || d.Len() != 1 {
				t.Fatalf("%s: %q", key, s.data[i])
			}
			for _, r := range d.Records() {
				unit, ok := r.Unit()
				if !ok || !isOf(p, unit) || unit.Low > unit.Number || unit.Unordered ||
					r.PartitionKey != key || r.ExplicitHashKey != hashes[key] {
					t.Errorf("%s: %+v, %+v %v", key, r, unit, ok)
				}
			}
		}
		if len(s.keys) != 3 || !slices.Contains(s.data, whole) || hashes["a"] != "7" {
			t.Errorf("%v %v", s.keys, hashes)
		}
	})
}

// A record that fits only without its identity is sent as it is, in the order of its lane. With a
// journal it is refused, and the error says how to correct that.
func TestRecordTooLargeForItsIdentity(t *testing.T) {
	for _, order := range []Order{OrderKey, OrderShard, OrderNone} {
		for _, journal := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &stream{}
				p, ctx := s.openUnits(t, func(c *Config) {
					c.MaxRecordBytes, c.Order, c.Reader = 1000, order, oneShard()
					if journal {
						c.Journal = &memoryJournal{}
					}
				})
				refused := 0
				for size := 800; size <= 999; size++ {
					record := runnel.Record{PartitionKey: "a", Data: make([]byte, size)}
					err := p.PutFunc(ctx, record, nil)
					if err == nil {
						continue
					}
					if refused++; !errors.Is(err, ErrTooLarge) ||
						!strings.Contains(err.Error(), "journal") ||
						!strings.Contains(err.Error(), "UpdateMaxRecordSize") {
						t.Fatalf("%d bytes: %v", size, err)
					}
				}
				closeNow(t, p, ctx)
				largest, bare := 0, 0
				for i, data := range s.data {
					largest = max(largest, len(data)+len(s.keys[i]))
					if !aggregate.IsAggregate([]byte(data)) {
						if bare++; s.keys[i] != "a" {
							t.Errorf("a record as it is has the key %s", s.keys[i])
						}
					}
				}
				if journal != (refused > 0) || refused > 150 || journal == (bare > 0) ||
					largest > 1000 || largest < 900 {
					t.Errorf("%v, journal %v: %d refused, %d as they are, the largest sent has %d bytes",
						order, journal, refused, bare, largest)
				}
			})
		}
	}
}

// In OrderChained each record is sent by PutRecord, with the number of its lane's previous record.
// Different lanes are in flight at the same time. A number that the stream refuses is left out.
func TestChained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 10 * time.Millisecond}
		named, refused := 0, false
		s.chained = func(key, after string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			last := ""
			for i, stored := range s.keys {
				if stored == key {
					last = fmt.Sprint(i + 1)
				}
			}
			switch {
			case after == "":
			case after != last:
				t.Errorf("key %s: the number %s is named, and %s is the last", key, after, last)
			case len(s.keys) > 10 && !refused:
				refused = true
				return apiError("InvalidArgumentException", "the number is not of the shard")
			default:
				named++
			}
			return nil
		}
		p, ctx := s.open(t, func(c *Config) { c.Order, c.MaxInFlight = OrderChained, 2 })
		began := time.Now()
		for i := range 10 {
			for _, key := range []string{"a", "b"} {
				put(t, p, ctx, runnel.Record{PartitionKey: key, Data: fmt.Append(nil, i+1)},
					func(r Result) {
						if r.Err != nil {
							t.Error(r.Err)
						}
					})
			}
		}
		closeNow(t, p, ctx)
		took := time.Since(began)
		if s.inOrder(t) != 0 || len(s.keys) != 20 || took > 120*time.Millisecond || s.most != 2 {
			t.Errorf("%d stored, %d at a time, after %v", len(s.keys), s.most, took)
		}
		// All except the first of each key and the one whose number was refused.
		if !refused || named != 17 {
			t.Errorf("%d records name the one before", named)
		}
	})
}
