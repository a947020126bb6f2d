// Package putlog is the journal by which an interrupted load goes on after any crash, so that
// nothing is lost and nothing doubled: the state file of `runnel put --resume`.
//
// # What it holds
//
// A producer freezes records into units, each with a number that consumers know doubles by. The
// journal has every unit before it is first sent (Frozen returns when it is on the disk), and is
// told later what became of it (Settled, which may be lost). After a crash the units that are
// not known to be settled go out again as the same bytes under the same numbers; records that
// are in no unit go out as new ones; all others are skipped. A record's mark is its index in
// the input.
//
// A unit that the producer packs anew is told as Again before the Frozen that holds its records
// again. If that Frozen never came, the records count as never frozen.
//
// A record that was refused or given up is kept with the reason, until the caller has written it
// elsewhere (Refused, Forget): a load with such a record is never complete in silence.
//
// # The file
//
// Frames, one after another: a mark, the length, a CRC-32C, a kind and its fields. Only the last
// frames can be torn, those behind the last sync, and what was not synced was not sent: they are
// dropped. A frame that is broken although a later one tells that it was synced is damage, and
// is refused. A file that has grown is written anew, with what still matters, and renamed.
package putlog
