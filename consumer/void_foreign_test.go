package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
)

// By default a void aggregate of another producer loses nothing: of the KPL's the records inside
// the range come, and of others all, whichever worker reads it, from whichever user record on.
func TestVoidOfOthers(t *testing.T) {
	for _, c := range []struct {
		name, outer string
		want        []string // by the number of user records processed before
		delivered   []int
	}{
		{
			"KPL", aggregate.OuterPartitionKey,
			[]string{"before a1 a2 behind", "a2 behind", "a2 behind", "behind"},
			[]int{2, 1, 1, 0},
		},
		{
			"other", "", // the first user record's key
			[]string{"before a1 b1 a2 b2 behind", "b1 a2 b2 behind", "a2 b2 behind", "b2 behind"},
			[]int{4, 3, 2, 1},
		},
	} {
		for processed, want := range c.want {
			bubble(t, 2, func(f *fleet) {
				a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
				outer := c.outer
				if outer == "" {
					outer = a
				}
				f.stream.put("before", a)
				f.stream.putAt(pack(0, part{key: a, data: []string{"a1"}},
					part{key: b, data: []string{"b1"}}, part{key: a, data: []string{"a2"}},
					part{key: b, data: []string{"b2"}}), outer, keyspace.Of(a))
				if processed > 0 {
					f.beginAt(f.stream.last(0, int64(processed-1)))
				}
				f.stream.put("behind", a)
				var j journal
				m := f.start("w1", j.into)
				f.expect(&j, want)
				voided := f.happened(consumer.EventVoided)
				var void *consumer.VoidError
				if len(voided) != 1 || !errors.As(voided[0].Err, &void) {
					t.Fatalf("%s, %d: voided: %+v", c.name, processed, voided)
				}
				dropped := 4 - processed - c.delivered[processed]
				if void.Records != 4 || void.Delivered != c.delivered[processed] ||
					void.Dropped != dropped || voided[0].Dropped != dropped {
					t.Errorf("%s, %d: %+v", c.name, processed, void)
				}
				if !strings.Contains(void.Error(), "delivered") {
					t.Error(void)
				}
				// Dropped records count as processed: a successor reads none of them again.
				f.mustStop(m)
				f.stream.put("end", a)
				f.start("w2", j.into)
				f.expect(&j, want+" end")
				if n := len(f.happened(consumer.EventVoided)); n != 1 {
					t.Errorf("%s, %d: reported %d times", c.name, processed, n)
				}
			})
		}
	}
}

// beginAt makes the table with a checkpoint in the first shard.
func (f *fleet) beginAt(at runnel.Position) {
	f.Helper()
	table := f.leaseTable()
	if err := table.Ensure(f.Context()); err != nil {
		f.Fatal(err)
	}
	for i, s := range f.stream.shards {
		checkpoint := runnel.Position{Sequence: runnel.TrimHorizon}
		if i == 0 {
			checkpoint = at
		}
		if _, _, err := table.Create(f.Context(), lease.Lease{
			Key: s.id, Checkpoint: checkpoint, Range: &s.keys,
		}); err != nil {
			f.Fatal(err)
		}
	}
}

// If a batch fails behind a void aggregate, its delivered records come again, and the same ones.
func TestVoidOfOthersAgain(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
		f.stream.putAt(pack(0, part{key: a, data: []string{"a1"}}, part{key: b, data: []string{"b1"}}),
			aggregate.OuterPartitionKey, keyspace.Of(a))
		var j journal
		failed := false
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				j.take(b.Records)
				if !failed {
					failed = true
					return errCut
				}
				return nil
			}
		})
		f.expect(&j, "a1 a1")
	})
}
