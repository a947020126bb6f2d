package allocate_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

const million = 1_000_000

// filled returns an allocator with a million keys, its own or any.
func filled(b *testing.B, own bool) (*allocate.Allocator, []keyspace.Key) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var a allocate.Allocator
	taken := make([]keyspace.Key, 0, million)
	for range million {
		key, err := keyspace.Key{Hi: random.Uint64(), Lo: random.Uint64()}, error(nil)
		if own {
			key, err = a.Allocate()
		} else {
			err = a.Add(key)
		}
		if err != nil {
			b.Fatal(err)
		}
		taken = append(taken, key)
	}
	random.Shuffle(million, func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
	return &a, taken
}

// BenchmarkAllocate is of one key beside a million others. "own" were allocated before; "any"
// are random keys that were added.
func BenchmarkAllocate(b *testing.B) {
	for name, own := range map[string]bool{"own": true, "any": false} {
		b.Run("beside/"+name, func(b *testing.B) {
			a, _ := filled(b, own)
			b.ResetTimer()
			for range b.N {
				if _, err := a.Allocate(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("release/"+name, func(b *testing.B) {
			a, taken := filled(b, own)
			b.ResetTimer()
			for i := range b.N {
				if err := a.Release(taken[i%million]); err != nil {
					b.Fatal(err)
				}
				if err := a.Add(taken[i%million]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMillion is of an allocator with a million keys, from nothing: how long it takes to
// make, and how much memory it holds.
func BenchmarkMillion(b *testing.B) {
	for name, own := range map[string]bool{"own": true, "any": false} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				a, taken := filled(b, own)
				runtime.GC()
				runtime.ReadMemStats(&after)
				held := after.HeapAlloc - before.HeapAlloc - uint64(16*len(taken))
				b.ReportMetric(float64(held)/million, "B/key")
				runtime.KeepAlive(a)
				runtime.KeepAlive(taken)
			}
		})
	}
}
