// Package keytable shares a table of names and their hash keys between processes, in DynamoDB. Each
// name (a tenant, device or account) gets an ExplicitHashKey of its own, and all keys are spread
// evenly over the shards of a stream (see allocate.Allocator). Keys can move to other shards while
// records are put and read, and each name keeps its order.
//
//	table, err := keytable.Open(ctx, keytable.Config{
//		DynamoDB: dynamodbClient, Table: "orders-keys",
//	})
//	session, err := table.Join(ctx)
//	p, err := producer.New(ctx, producer.Config{Stream: "orders", Kinesis: client, Keys: session})
//
// # The table
//
// The table holds a log of changes and the resulting rows, one for each name. A change is one
// transaction: it raises the version of the head from v to v+1 on the condition that the version is
// v, adds row v+1 to the log, and writes the rows of the names. If the condition fails, the process
// reads the log from its own version on and decides again. So all processes go through the same
// states, no two processes allocate the same key, and each new key is the one that balances best at
// its version. The log keeps the last 1,000 changes; a process that is further behind reads the
// whole table.
//
// # A move
//
// Table.Move moves names from one key to another. Any process can finish an interrupted move
// (Table.Resume) or revert it (Table.Abort). Its steps:
//
//   - The log records that the names are moving. From now on Use waits for them: back-pressure.
//   - Each session drains the names: every record under an old key gets its result. The session
//     records this in its row. A session without a renewal for its expiry counts as dead.
//   - A mark goes under each old key: an aggregate without user records, which readers ignore.
//     Every earlier record of the key lies before the mark, in the same shard or in an ancestor of
//     it. A KCL on an idle shard never checkpoints past a mark, so the move reads the records after
//     the checkpoint.
//   - Each application passes the mark: its checkpoint reaches the mark, or only marks lie between.
//     A reader processes the parents of a shard first, so the application has then read all records
//     of the names under the old keys.
//   - The log records that the names have moved, and Use continues with the new keys.
//
// A move without applications (MoveConfig.WithoutApps) puts no marks and does not wait for them.
//
// # Conditions of the order
//
// The records of a name keep their order, for one producer, through any number of moves, splits and
// merges, on these conditions:
//
//   - They go through Session.Use. producer.Config.Keys does this for all records without an
//     ExplicitHashKey of their own. Move gets the names of all applications that need the order.
//   - Their attempts have an identity (producer.OrderKey, OrderShard), and readers drop doubles. An
//     attempt without an answer may arrive late, in the old shard, behind the mark. There it is a
//     double of an earlier record, and a runnel reader drops it. With OrderPlain, another producer,
//     or a reader that does not know units, such as the KCL, it is a double out of order.
//   - None of them ends with producer.ErrMaybeStored: given up, unresolved, or cut off by Close.
//     Such a record may still arrive in the old shard, behind the mark. There a reader drops it
//     only if a newer record of its producer came first.
//   - When Config.Expiry has passed, a process that was paused or cut off from the table has no
//     record in flight. It starts no record in the second half of that time. If it still sends one
//     after the other processes have declared it dead, that record comes under the old key, behind
//     the mark.
//   - A process that died with units in a producer.Journal resumes them before the name moves. They
//     keep their old key, and no session waits for them.
package keytable
