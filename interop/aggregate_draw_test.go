package interop

import (
	"crypto/md5" //nolint:gosec // the format's check sum
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

const outerKey = aggregate.OuterPartitionKey

// drawer draws random aggregates.
type drawer struct{ *rand.Rand }

// batch draws the user records of one aggregate. No key looks like an array's index: awslabs'
// packer for JavaScript keeps the keys in an object, which sorts such keys.
func (d drawer) batch() []aggregate.Record {
	keys := make([]string, 1+d.IntN(8))
	for i := range keys {
		alphabet := []string{"key", "ключ", "鍵", "🔑", " "}[d.IntN(5)]
		keys[i] = fmt.Sprintf("%s-%d", alphabet, d.IntN(1000))
	}
	explicit := d.IntN(3) // one of three batches has no explicit hash keys
	records := make([]aggregate.Record, 1+d.IntN(40))
	for i := range records {
		r := &records[i]
		r.PartitionKey = keys[d.IntN(len(keys))]
		r.Data = d.bytes(d.IntN(300))
		if d.IntN(3) < explicit {
			r.ExplicitHashKey = keyspace.Key{Hi: d.Uint64(), Lo: d.Uint64()}.String()
		}
		for range max(0, d.IntN(4)-1) {
			r.Tags = r.Tags.Append("tag", fmt.Sprint(d.Uint64()))
		}
	}
	return records
}

func (d drawer) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return b
}

// shard draws the range of a shard, often the whole key space.
func (d drawer) shard() keyspace.Range {
	ranges := keyspace.Uniform([]int{1, 1, 2, 4}[d.IntN(4)])
	return ranges[d.IntN(len(ranges))]
}

// damage changes some bytes of the message and corrects its MD5. With a wrong MD5 a reader would
// check nothing else.
func (d drawer) damage(sound []byte) []byte {
	data := slices.Clone(sound)
	message := data[4 : len(data)-md5.Size]
	for range 1 + d.IntN(3) {
		at := d.IntN(len(message))
		switch d.IntN(5) {
		case 0:
			message[at] = byte(d.Uint32())
		case 1:
			message[at] ^= 1 << d.IntN(8)
		case 2: // the later bytes move
			message = slices.Insert(message, at, d.bytes(1+d.IntN(3))...)
		case 3:
			message = slices.Delete(message, at, min(len(message), at+1+d.IntN(3)))
		case 4: // a piece comes twice
			to := min(len(message), at+1+d.IntN(20))
			message = slices.Insert(message, d.IntN(len(message)), slices.Clone(message[at:to])...)
		}
		if len(message) == 0 {
			return data
		}
	}
	return sealed(message)
}

// sealed returns the data of an aggregated record with this message.
func sealed(message []byte) []byte {
	sum := md5.Sum(message) //nolint:gosec // see the import
	return slices.Concat([]byte("\xf3\x89\x9a\xc2"), message, sum[:])
}

// pack packs records with runnel's package aggregate.
func pack(t *testing.T, records []aggregate.Record) []byte {
	t.Helper()
	var e aggregate.Encoder
	for _, r := range records {
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return e.Seal(nil)
}

func untagged(records []aggregate.Record) []aggregate.Record {
	records = slices.Clone(records)
	for i := range records {
		records[i].Tags = nil
	}
	return records
}
