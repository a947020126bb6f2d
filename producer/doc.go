// Package producer puts records into a Kinesis stream in batches and in order.
//
// PutRecords takes 500 records in one call, and keeps no order: AWS documents that one record
// of a call may fail while those behind it are stored ("PutRecords doesn't guarantee the
// ordering of records"). A producer that sends the failed ones again has then reordered them.
// PutRecord keeps order at one record a round trip. This package has both, by key lanes.
//
// # Lanes
//
// A lane is the records of one partition key and one explicit hash key, first in, first out.
//
//   - One of a lane in flight: the next record of a lane is sent only when the outcome of the
//     one before it is known. A call carries one record each of up to 500 lanes, and several
//     calls are in flight over disjoint lanes.
//   - Failed before newer: a record that was throttled, that failed, or whose call had no
//     answer stays at the front of its lane, and is sent again before anything newer of it.
//   - Only what failed waits. The other lanes go on. Of what can be sent the oldest records go
//     first: a cold key does not wait for what a hot one is given after it, and a hot key,
//     which has one record a round trip, loses none of them.
//
// Order therefore needs no knowledge of the shards, and holds while the stream is split and
// merged: the next record of a lane leaves after the answer for the one before it, and a
// consumer reads a parent shard to its end before its children.
//
// # Outcomes
//
// What each outcome of a record means for order and for doubles:
//
//   - Delivered, no unknown attempt: it is in the stream exactly once.
//   - Delivered, n unknown attempts: it is there at least once and at most 1 + n times. An
//     unknown attempt is a call without an answer (a time-out, a cut connection, a 5xx, an
//     answer that cannot be read): the stream may have stored the record, or may do so later.
//     The record's first occurrence is in the order of its lane, whichever attempt made it. A
//     double may surface late, behind newer records of its lane.
//   - Refused (ErrRefused): the stream said no to this record, and sending it again would not
//     help. Without unknown attempts it is not in the stream.
//   - Given up (ErrGivenUp, only with Config.GiveUpAfter) or closed (ErrClosed, only when
//     Close ran out of time): not acknowledged. Without unknown attempts it is not in the
//     stream. With any, the error also matches ErrUnknown: the record may be in the stream
//     once for each, and, as the one outcome that order cannot survive, its first occurrence
//     may come behind records of its lane that were taken after it.
//
// After a record that was not delivered its lane goes on with the next: what the stream then
// holds is in order, with a gap. By default nothing is given up, and outages of any length are
// waited out.
//
// Stats.Unknown is the number of (record, call) pairs without an answer: the upper bound for
// the doubles that a producer has left in the stream.
//
// Order and doubles are one producer's: two producers that put the same key at the same time
// have no order between them, and a program that restarts and puts a record again doubles it.
//
// # Inside
//
// The decisions are made by a state machine without I/O, clock or goroutine (type core). A
// thin shell around it holds the mutex, runs the calls and calls back.
package producer
