package keyspace_test

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
)

// Keys for new tenants, beside those that are in use. A small space makes the numbers easy to
// follow; for a stream, begin with new(keyspace.Allocator).
func ExampleAllocator() {
	space, _ := keyspace.NewSpace(keyspace.Key{Lo: 128})
	allocator := keyspace.NewAllocator(space)
	inUse, _ := keyspace.ParseList("0, 32, 9, 57")
	if err := allocator.AddRated(inUse...); err != nil {
		fmt.Println(err)
	}
	for range 3 {
		key, err := allocator.Allocate()
		fmt.Println(key, err)
	}
	// Output:
	// 64 <nil>
	// 96 <nil>
	// 80 <nil>
}
