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
//   - One of a lane in flight: the next of a lane is sent only when the outcome of what went
//     before it is known. A call carries one Kinesis record each of up to 500 lanes, and several
//     calls are in flight over disjoint lanes.
//   - Failed before newer: what was throttled, failed, or had no answer stays at the front of
//     its lane, and is sent again, as the same bytes, before anything newer of it.
//   - Only what failed waits. The other lanes go on. Of what can be sent the oldest records go
//     first: a cold key does not wait for what a hot one is given after it. A shard that refuses
//     records for its limits slows down its own lanes and those of its groups (see below).
//
// Order therefore needs no knowledge of the shards, and holds while the stream is split and
// merged: the next of a lane leaves after the answer for what went before it, and a consumer
// reads a parent shard to its end before its children.
//
// # Units
//
// In the default order, OrderKey, what waits in a lane when its turn comes is folded into one
// Kinesis record, a unit: an aggregated record of the lane's records, with the lane's own keys,
// and an identity that package aggregate describes. So a hot key costs no more round trips than
// a cold one, and a consumer that filters drops every double. OrderPlain sends each record as it
// is, OrderChained one record a call; OrderShard and OrderNone pack many lanes, see below.
//
// A unit without an answer is sent again for no longer than H after its first attempt
// (aggregate.H, 5 minutes), so that consumers know when nothing of it can come any more. After an
// outage that was longer:
//
//   - Where all attempts surely failed, its records go out in a new unit.
//   - Where one had no answer, it is looked up, by reading its shard from the first attempt on,
//     when 2H have gone by since the last one: found, its records are delivered; absent, they go
//     out in a new unit. Order and doubles stay exact, whatever the length of the outage. The
//     producer's clock may be wrong and may be set: durations are counted by a clock that never is,
//     and the shard is read by the stream's own time, the Date of its answers. An endpoint in
//     between must therefore leave that header as it is. Without one the producer's clock counts.
//   - A producer that may not read (Config.Reader) reports them: ErrUnresolved.
//
// A record that is an aggregate already goes as it is, alone and without an identity, and so does
// one that leaves no room for an identity within the stream's record limit.
//
// # Groups
//
// The lanes of a run are in 16 groups, each with a 16th of the key space: the first four bits of
// a hash key say its group, for the whole run and whatever the shards are. A group has a producer
// id, numbers and a lowest unsettled number (LOW) of its own. Its numbers run at most 4,096 ahead
// of its LOW; its lanes then wait. And a group has its share of the buffer: a 32nd is reserved
// for it, and of the common half it leaves most to the others while its shard refuses records.
//
// So a shard that refuses records delays the lanes and the callers of its own groups, and no
// others, however long that takes:
//
//   - Streams of 1, 2, 4, 8 or 16 equal shards have no group in two shards. With other numbers,
//     or shards of unequal size, neighbours may have a group in common, and wait for each other
//     there. With more than 16 shards several share each group.
//   - A caller that puts records of all shards, one after the other, goes at the pace of the
//     slowest shard: it waits as soon as its next record has no room. So does a file that is
//     put line by line. Use a caller for each shard, or many callers.
//   - Flush and Close wait for every record, and so for the slowest shard.
//
// # Packing by shard
//
// In OrderKey a Kinesis record holds one lane's records. Two orders let many lanes share one, so
// that small records of many keys cost few calls and bytes:
//
//   - OrderShard: the units of many lanes, each with its own identity on its first record. Order
//     and all else is as in OrderKey. What fails is packed anew, in whatever company there is
//     then; a unit keeps its number and its records.
//   - OrderNone: records of many lanes in one unit without an order, any number of them in
//     flight. Nothing is lost, and a filter drops every double; results come in any order.
//
// That takes a list of the shards, which Config.Reader makes at the start; records wait for it.
// It is made anew when an answer names a shard that is not as expected. A list can be out of
// date, and a Kinesis record of which a record inside does not belong to the shard that it is in
// is dropped by readers as a whole, as the KCL does: it is void. So every answer is held against
// the range of the shard that it names. What is void goes out anew at once:
//
//   - In OrderShard under the same numbers, since a copy may stand, or come, where it is valid, as
//     in the shard's parent: of all copies a filter takes the first that is.
//   - In OrderNone in new units, unless an attempt was unknown: the unit is then looked up first,
//     when 2H have gone by, as above.
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
//     double may surface late, behind newer records of its lane; in a unit, a filter drops it.
//   - Refused (ErrRefused): the stream said no to this record, and sending it again would not
//     help. Without unknown attempts it is not in the stream. ErrRefusedCaller says that it was
//     not because of the record: the caller's credentials, its rights, a key of KMS or the
//     stream's name are wrong.
//   - Halted (ErrHalted), in the place of that, in a producer with a Journal: see below.
//   - Given up (ErrGivenUp, only with Config.GiveUpAfter), unresolved (ErrUnresolved) or closed
//     (ErrClosed, only when Close ran out of time): not acknowledged. Without unknown attempts it
//     is not in the stream. With any, the error also matches ErrMaybeStored: the record may be in
//     the stream once for each. In a unit it is then in order, or the filter drops it as
//     overtaken; without one, as the one outcome that order cannot survive, its first
//     occurrence may come behind records of its lane that were taken after it.
//
// A unit with an unknown attempt is in the stream as a whole or not at all, so it is given up
// with the youngest of its records.
//
// After a record that was not delivered its lane goes on with the next: what the stream then
// holds is in order, with a gap. By default nothing is given up, and outages of any length are
// waited out.
//
// A refusal of the caller meets every record alike, and passes when the caller is mended.
// Without a Journal each record is reported, since nothing would send it again. With one a later
// run does, and would skip the reported ones: so the producer halts. Calls in flight land, the
// units that are left stay open in the journal, and Put, Flush and Close return a *HaltedError. A
// token that has expired counts as that if the client does not get another one.
//
// An error that no code has looked at (by Config.OnResult, a callback, or the Future) is not lost:
// Flush and Close return an *UnseenError with the number of such records and the first cause.
//
// Stats.Unknown is the number of (record, call) pairs without an answer: the upper bound for
// the doubles that a producer has left in the stream.
//
// Order and doubles are one producer's: two producers that put the same key at the same time
// have no order between them. A program that restarts and puts a record again doubles it, unless
// it keeps a Journal, and gives what is open in it to the next run (Config.Resume).
//
// # Inside
//
// The decisions are made by a state machine without I/O, clock or goroutine (type core). A
// thin shell around it holds the mutex, runs the calls and calls back.
package producer
