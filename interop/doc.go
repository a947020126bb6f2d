// Package interop tests `runnel serve` with published clients of other languages, at pinned
// versions. The server checks signatures and serves TLS. `make interop` installs the clients and
// runs all tests; `go test` alone runs only the journey of the Go SDK.
//
// Each SDK makes the same journey: create a stream of two shards; register a consumer and subscribe
// to both shards; put a batch; split the first shard; put another batch; merge the split's upper
// half with the second shard; scale to two even shards, so that every shard with records is closed;
// read every shard by polling and every closed one by fan-out to its end; deregister; delete.
//
// The Java KCL runs in two versions side by side: 3.5.1 with fan-out and 2.7.2 with polling. Each
// has two workers, with runnel as their Kinesis, DynamoDB and CloudWatch. Meanwhile shards split
// and merge, and one worker is killed. `make interop-all` runs both versions in both ways and
// writes the table of docs/interop.md. A worker of runnel and one of each KCL also take turns by
// one lease row, inside an aggregate each time.
//
// Amazon's DynamoDB Local serves for comparison: runnel and DynamoDB Local get the same random
// requests and must give the same answers, except for
// the differences that knownDifferences lists with their reasons.
//
// Aggregated records go both ways. The KPL's native process writes them over TLS, and runnel and a
// KCL open them. The KCL and awslabs' libraries for Python and JavaScript open runnel's aggregates,
// and runnel opens theirs.
package interop
