package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// BenchmarkSkewFile reads a file of ten million keys, of which some are hot, as `keys skew
// --shards 100` does: an operation is a pass over the file.
func BenchmarkSkewFile(b *testing.B) {
	const keys = 10_000_000
	name := filepath.Join(b.TempDir(), "keys.txt")
	var text bytes.Buffer
	for i := range keys {
		if i%8 == 0 {
			i %= 20
		}
		fmt.Fprintf(&text, "customer-%d\n", i)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		skew, err := load.NewSkew(keyspace.Uniform(100), Counters)
		if err != nil {
			b.Fatal(err)
		}
		seen := &Load{Skews: []*load.Skew{skew}}
		err = seen.ReadFiles(context.Background(), &Flags{By: "records"}, input.Names(),
			[]string{name})
		if err != nil || seen.Records != keys {
			b.Fatalf("%d records, %v", seen.Records, err)
		}
	}
	b.ReportMetric(keys*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
}
