package allocate_test

import (
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// Keys for new tenants beside the keys in use. A small space makes the numbers easy to follow; for
// a stream, use new(allocate.Allocator).
func ExampleAllocator() {
	space, _ := allocate.NewSpace(keyspace.Key{Lo: 128})
	allocator := allocate.New(space)
	inUse, _ := allocate.ParseRated("0, 32, 9, 57")
	if err := allocator.AddRated(inUse...); err != nil {
		fmt.Println(err)
	}
	for range 3 {
		key, err := allocator.Allocate()
		fmt.Println(key, err)
	}
	err := allocator.Add(keyspace.Key{Lo: 64})
	fmt.Println(err, errors.Is(err, allocate.ErrKeyTaken))
	// Output:
	// 64 <nil>
	// 96 <nil>
	// 80 <nil>
	// the key is taken already: 64 true
}

// The first keys of an empty space: each half gets every second key.
func ExampleSpace_Nth() {
	space, _ := allocate.ParseSpace("2^7")
	for n := range uint64(8) {
		key, _ := space.Nth(keyspace.Key{Lo: n})
		fmt.Print(key, " ")
	}
	// Output: 64 32 96 16 80 48 112 8
}

// Keys that were chosen one after the other lie in one half. Three moves balance them.
func ExampleRebalance() {
	space, _ := allocate.ParseSpace("128")
	inUse, _ := allocate.ParseRated("1, 2, 3, 4")
	moves, err := allocate.Rebalance(space, inUse)
	for _, m := range moves {
		fmt.Println(m.From, "to", m.To)
	}
	fmt.Println(err)
	// Output:
	// 2 to 48
	// 3 to 80
	// 4 to 112
	// <nil>
}
