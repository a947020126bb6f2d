// Package runnel holds the nouns that every part of the product shares: records, shards,
// sequence numbers and positions. There is no I/O here, no goroutine and no clock.
//
// The parts that do something stand in packages of their own: producer puts records in
// order, consumer reads them with a fleet of workers, sink holds what exactly-once sinks
// promise, server speaks the Kinesis and DynamoDB APIs, and runneltest gives a test a server.
package runnel
