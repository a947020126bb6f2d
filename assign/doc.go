// Package assign keeps names and their hash keys in a DynamoDB table that processes share: each
// tenant, device or account gets an ExplicitHashKey of its own, such that all of them are spread
// evenly over a stream's shards (see keyspace.Allocator). Keys can be moved while records are put
// and read, and each name keeps its order.
//
//	table, err := assign.Open(ctx, assign.Config{API: dynamodbClient, Table: "orders-keys"})
//	session, err := table.Join(ctx)
//	p, err := producer.New(ctx, producer.Config{Stream: "orders", Client: client, Keys: session})
//
// # The table
//
// The table is a log of changes, and the rows that it comes to. A change is one transaction: the
// head's version goes from v to v+1 on the condition that it is v, the log gets row v+1, and the
// names' rows are written. Who finds the condition failed reads the log from its own version on,
// and decides again. So all processes go through the same states, no two give out the same key,
// and the key that a new name gets balances best in the state that it is given in. Of the log the
// last 1,000 changes are kept; who is further behind reads the whole table.
//
// # A move
//
// Table.Move takes names from one key to another, in steps that any process can go on with
// (Table.Resume) or take back (Table.Abort):
//
//   - The log says that the names are moving. Use waits for them from now on: back-pressure.
//   - Each session drains them: what was put under the old key has its result. It tells so in its
//     row. A session that is silent for its expiry is taken for dead.
//   - A mark is put under each old key: an aggregate without user records, of which no reader
//     makes anything. Whatever was put under the key stands before it, in the same shard or in one
//     that this shard came from.
//   - Each application passes the mark: its checkpoint is there, or nothing but marks stands
//     between. A reader processes a shard's parents before it, so no record of the names under the
//     old keys is left to be read.
//   - The log says that the names have moved, and Use goes on, with the new keys.
//
// Without applications (MoveConfig.WithoutApps) the marks and the waiting for them are left out.
//
// # What order needs
//
// A name is in order, for one producer, through any number of moves, splits and merges, if:
//
//   - Its records go through Session.Use, which producer.Config.Keys does for all without an
//     ExplicitHashKey of their own; and every application that needs the order is named to Move.
//   - Its attempts have an identity (producer.OrderKey, OrderShard) and readers drop doubles. An
//     attempt without an answer may come late, into the old shard, behind the mark: there it is
//     the double of what came before, and a runnel reader drops it. With OrderPlain, another
//     producer, or a reader that knows no units, as the KCL, it is a double out of order.
//   - No record ends with producer.ErrUnknown: given up, unresolved, or cut off by Close. What may
//     still come of it comes into the old shard, behind the mark. There a reader drops it only if
//     something newer of its producer came before it.
//   - A process that is silent for Config.Expiry, being paused or cut off from the table, has ended
//     what it had in flight. It takes nothing more for the second half of that time. What it still
//     sends when others have taken it for dead comes under the old key, behind the mark.
//   - A process that died with units in a producer.Journal has resumed them before the name
//     is moved: they keep the key that they were frozen with, and no session waits for them.
package assign
