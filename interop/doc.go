// Package interop runs real clients of other languages against the server: one `runnel serve`
// that checks signatures and speaks TLS, and one journey that each client makes with its own
// SDK. `make interop` installs them, pinned, and runs the journeys; `go test` alone runs Go's.
//
// The journey: create a stream of two shards; register a consumer and subscribe to both
// shards; put a batch; split the first shard; put another batch; merge the split's upper half
// with the second shard; scale to two even shards, so that every shard with records is closed;
// read every shard by polling and every closed one by fan-out to its end; deregister; delete.
//
// And the Java KCL, versions 3.5.1 with fan-out and 2.7.2 with polling, side by side: two workers
// each on that server alone, which is their Kinesis, DynamoDB and CloudWatch, while shards split
// and merge and one worker is killed. `make interop-all` runs both versions in both ways, and
// writes the table of docs/interop.md.
//
// And Amazon's DynamoDB Local, which is no client: runnel and it get the same random requests, and
// must give the same answers.
//
// And aggregated records: the KPL's native process writes them over TLS, and runnel and a KCL
// open them; runnel's are opened by the KCL and by awslabs' libraries for Python and JavaScript,
// whose own runnel opens.
package interop
