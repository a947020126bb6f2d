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
	cfg := keytable.Config{DynamoDB: server.DynamoDB(), Table: "tenants", Space: space}

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

// A session gives each record the hash key of its name; producer.Config.Keys calls it.
func ExampleSession_Use() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	table, err := keytable.Open(ctx, keytable.Config{DynamoDB: server.DynamoDB(), Table: "tenants"})
	if err != nil {
		log.Fatal(err)
	}
	session, err := table.Join(ctx)
	if err != nil {
		log.Fatal(err)
	}
	hashKey, done, err := session.Use(ctx, "alice")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hashKey)
	done() // the record has its result
	fmt.Println(session.Close(ctx))
	// Output:
	// 170141183460469231731687303715884105728
	// <nil>
}
