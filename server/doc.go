// Package server serves several AWS APIs on one port, over one data directory: the Kinesis API, the
// part of the DynamoDB API that lease tables need, and the operations of CloudWatch and STS that
// the KCL and the KPL call. A request's X-Amz-Target header names its service, or, in the query
// protocol, the API version in the form; the path selects only GET /health, GET /metrics and calls
// in rpcv2Cbor.
//
// By default an acknowledged call is durable, and nothing can be read before it is: see packages
// kinesis and wal below server/internal. With Config.SyncInterval a power loss may take the calls
// of about one interval; a crash of the process takes none. This package holds the routing of
// calls, event streams, metrics, the start and the end, and faults on request.
//
// # Lock order
//
// The order holds for all packages below server/internal:
//
//  1. wal.Log.Sequence, a shared lock that a snapshot takes alone;
//  2. the catalogue's lock, or, in a transaction on items, the lock of the tokens by which clients
//     repeat a transaction, and then those of its tables in the order of their numbers, never the
//     store's;
//  3. a shard's sequencing lock;
//  4. the log's queue.
//
// A durable frame's callback runs in the committer, or, for data in memory, in the goroutine that
// appends. It runs behind all of these locks and takes publishing locks only. No goroutine blocks
// while it holds one of those, and no mutex is held over I/O.
//
// # Two states
//
// The head state and the visible state differ. A decision changes the head state at once, so that
// the next decision sees it. The answer to a client waits until the log is durable up to that
// change.
package server
