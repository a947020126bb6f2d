// Package runnel holds the nouns that all packages share: records, shards, sequence numbers and
// positions. It has no I/O, no goroutine and no clock.
//
// Other packages do the work: producer puts records in order, consumer reads them with a fleet of
// workers, sink is the contract of exactly-once sinks, server speaks the Kinesis and DynamoDB
// APIs, and runneltest gives a test a server.
package runnel
