// Package producer puts records into a Kinesis stream in batches and in order.
//
// PutRecords takes up to 500 records in one call but keeps no order. AWS documents that a record
// of a call may fail while later ones are stored ("PutRecords doesn't guarantee the ordering of
// records"). A producer that sends the failed records again has then reordered them. PutRecord
// keeps the order, but takes only one record in each round trip. This package gives both order and
// batches, by means of lanes.
//
// # Lanes
//
// A lane is a first-in, first-out queue of the records with one partition key and one explicit hash
// key. Three rules apply:
//
//   - One in flight: the next record of a lane is sent only when the outcome of the previous one is
//     known. A call carries one Kinesis record for each of up to 500 lanes. Several calls run
//     at the same time, over different lanes.
//   - Failed before newer: a record that was throttled, failed or got no answer stays at the front
//     of its lane. The producer sends it again, with the same bytes, before any newer record of the
//     lane.
//   - Only the failed lane waits. The others go on, and the oldest record that can be sent goes
//     first, so a lane with few records does not wait behind newer records of a busy lane. If a
//     shard throttles, the producer slows down the lanes of that shard and of its groups (see
//     below).
//
// So the order does not depend on the shards, and it holds while the stream is split and merged:
// the next record of a lane leaves after the answer for the previous one, and a consumer reads a
// parent shard to its end before its children.
//
// # Units
//
// In the default order, OrderKey, the records that wait in a lane when its turn comes are packed
// into one unit. A unit is an aggregated record with the lane's keys, sent as one Kinesis record,
// and with an identity (a producer id and a number, see package aggregate). So a busy lane needs no
// more round trips than a quiet one, and consumers that filter by the identity drop every
// duplicate. OrderPlain sends each record as it is. OrderChained sends each record as it is, one in
// each call. OrderShard and OrderNone pack the records of many lanes together (see below).
//
// A unit without an answer is sent again for at most H after its first attempt (aggregate.H,
// 5 minutes). The limit lets consumers know when no further copy can come. After an outage longer
// than H:
//
//   - If every attempt certainly failed, the records go out in a new unit.
//   - If an attempt had no answer, the producer waits until 2H after the last attempt, and then
//     looks the unit up: it reads the shard from a point before the first attempt, behind a record
//     that was acknowledged earlier or from the stream's last Date before it. If the unit is there,
//     its records count as delivered. If not, they go out in a new unit. So order and
//     duplicates stay exact however long the outage was.
//   - If the producer cannot read the stream (Config.Reader is nil or lacks the rights), it reports
//     the records of such a unit with ErrUnresolved.
//
// A wrong or changed system clock does no harm. The producer measures durations by a clock that is
// never set, and reads the shard by the stream's own time, which it takes from the Date header of
// the answers. An endpoint between the producer and the stream must therefore leave that header
// unchanged. If the answers have no Date, the producer uses its own clock.
//
// A record that is already an aggregated record goes as it is, alone and without an identity. So
// does a record so large that its identity would exceed the stream's record limit.
//
// # Groups
//
// The lanes of a run are divided into 16 groups of equal parts of the key space: the first four
// bits of a lane's hash key are its group, for the whole run and whatever the shards are. Each
// group has a producer id, a sequence of unit numbers and a lowest unsettled number (LOW) of its
// own. Its numbers run at most 4,096 ahead of its LOW; then its lanes wait. Each group also has a
// share of the buffer: one 32nd is reserved for it, and the groups share the other half. If its
// shard throttles, a group gets only a small part of that half.
//
// So a shard that throttles, for however long, delays only the lanes and the callers of its own
// groups:
//
//   - In a stream of 1, 2, 4, 8 or 16 equal shards, no group spans two shards. With any other
//     number, or with shards of unequal size, neighbouring shards may have a group in common and
//     wait for each other there. With more than 16 shards, several shards share each group.
//   - A single caller that puts records of all shards one after the other runs at the pace of the
//     slowest shard, because it waits as soon as its next record has no room. The same holds for a
//     program that puts a file line by line. Use one caller for each shard, or many callers.
//   - Flush and Close wait for every record, and so for the slowest shard.
//
// # Packing by shard
//
// In OrderKey a Kinesis record holds records of one lane. Two orders pack many lanes into one
// Kinesis record, so that small records of many keys need fewer calls and bytes:
//
//   - OrderShard packs the units of many lanes, each with its own identity on its first record. It
//     promises the same as OrderKey. After a failure the units are packed again, possibly together
//     with others; a unit keeps its number and its records.
//   - OrderNone packs records of many lanes into one unordered unit, and any number of units is in
//     flight. No record is lost and a filter drops every duplicate, but there is no order, of
//     records or of results.
//
// Both need a list of the shards, which Config.Reader makes at the start; records wait for it. The
// producer lists the shards again when an answer names another shard than it expected.
//
// The list can be out of date. A Kinesis record that holds a hash key outside the range of its
// shard is void: readers drop it as a whole, as the KCL does. The producer therefore checks every
// answer against the range of the shard that it names, and sends void records again at once:
//
//   - OrderShard sends the units again under the same numbers. A valid copy may already be in the
//     stream or arrive later, for example in the shard's parent, and a filter takes the first valid
//     copy.
//   - OrderNone sends the records in new units. If an attempt was unknown, it first waits for 2H
//     and looks the unit up, as above.
//
// # Outcomes
//
// Each record has one outcome, which says the following about order and duplicates:
//
//   - Delivered, with no unknown attempt: the record is in the stream exactly once.
//   - Delivered, with n unknown attempts: it is in the stream at least once, at most 1 + n times.
//     An unknown attempt is a call without a usable answer (a time-out, a cut connection, a 5xx, an
//     answer that cannot be decoded): the stream may have stored the record, or may store it later.
//     The first copy is in the order of the lane, whichever attempt made it. A later copy may
//     come behind newer records of the lane. In a unit, a filter drops it.
//   - Refused (ErrRefused): the stream refused the record and would do so again. Without unknown
//     attempts the record is not in the stream. If the error also matches ErrRefusedCaller, the
//     record is not the cause: the caller's credentials, its rights, a KMS key or the stream's name
//     are wrong.
//   - Halted (ErrHalted): replaces a refusal of the caller in a producer with a Journal. See below.
//   - Given up (ErrGivenUp, only with Config.GiveUpAfter), unresolved (ErrUnresolved) or closed
//     (ErrClosed, only when Close ran out of time): the record was not acknowledged. Without
//     unknown attempts it is not in the stream. With n of them, the error also matches
//     ErrMaybeStored, and the stream may hold up to n copies. In a unit, a copy is in order, or the
//     filter drops it as overtaken. Outside a unit, the first copy may come behind newer records
//     of the lane. That is the only outcome which breaks the order.
//
// A unit with an unknown attempt is in the stream as a whole or not at all. It is therefore given
// up as a whole, when its youngest record is overdue.
//
// After an undelivered record its lane goes on with the next one: the stream then holds the lane in
// order, with a gap. By default nothing is given up, and the producer waits for the end of an
// outage of any length.
//
// A refusal of the caller affects every record alike, and ends when the caller's configuration is
// corrected. Without a Journal the producer reports each record as refused, because it could not
// send the record later. With a Journal a later run can, but would skip the records that were
// reported. So the producer halts: it waits for the calls in flight, leaves the remaining units
// open in the journal, and returns a *HaltedError from Put, Flush and Close. An expired token
// counts as such a refusal if the client's credentials cannot be renewed.
//
// Errors that the program never looks at (through Config.OnResult, a callback or the Future) are
// not lost: Flush and Close return an *UnseenError with the number of such records and the first
// cause.
//
// Stats.Unknown counts the pairs of a record and a call that had no answer. It is the upper bound
// for the duplicates that the producer has left in the stream.
//
// All these promises are for one producer. Two producers that put the same key at the same time
// have no order between them. A program that restarts and puts a record again duplicates it,
// unless it keeps a Journal and passes the open units to the next run (Config.Resume).
//
// # Inside
//
// A state machine without I/O, clock or goroutine makes the decisions (type core). A thin shell
// around it, type Producer, holds the mutex, makes the calls and runs the callbacks. A record takes
// this way through the files:
//
//   - Put (producer.go) gets room in the buffer (room.go) and passes the record to the core
//     (core.go), which adds it to its lane (lane.go).
//   - The goroutine schedule (producer.go) asks the core for calls (launch.go). The core freezes
//     units (unit.go) with numbers of their groups (group.go), at the rate of their shards
//     (shards.go), and loads them into Kinesis records (packing.go, parcel.go).
//   - The journal stores new units (journal.go). Each call then has a goroutine, which encodes it,
//     sends it (call.go), and classifies the answer (classify.go).
//   - The core takes the outcome (land.go): it settles records (ledger.go), gives them up
//     (settle.go), or holds their lane for another attempt. After H it has units looked up
//     (horizon.go, lookup.go).
//   - The goroutine deliver reports the results (deliver.go).
package producer
