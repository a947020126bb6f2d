package keytable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/keytable"
	"github.com/runnel-stream/runnel/runneltest"
)

// Two processes share the keys of their tenants. A small space makes the numbers easy to follow;
// for a stream, leave Config.Space as it is.
func Example() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	space, _ := allocate.NewSpace(keyspace.Key{Lo: 128})
	cfg := keytable.Config{API: server.DynamoDB(), Table: "tenants", Space: space}

	one, err := keytable.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	other, err := keytable.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"alice", "bob", "carol"} {
		key, err := one.Key(ctx, name)
		fmt.Println(name, key, err)
	}
	key, err := other.Key(ctx, "bob") // the same key, in another process
	fmt.Println("bob", key, err)
	err = other.Release(ctx, "dave")
	fmt.Println(err)
	// Output:
	// alice 64 <nil>
	// bob 32 <nil>
	// carol 96 <nil>
	// bob 32 <nil>
	// release: key table tenants: "dave": the name has no key
}
