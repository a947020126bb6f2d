// Package putlog is the journal of a load: the state file of `runnel put --resume`. With it an
// interrupted load continues after any crash, without loss and without doubles. The command put
// writes it through the producer's journal hooks.
//
// # Contents
//
// A producer freezes records into units. A consumer recognises a unit's doubles by its number. The
// journal contains every unit before its first send (Frozen returns once the unit is on the disk)
// and later its fate (Settled, which a crash may lose). After a crash, a unit without a fate is
// sent again as the same bytes under the same number, a record in no unit is put as a new one, and
// all other records are skipped. A record's mark (producer.PutMarked) is its index in the input.
//
// If the producer packs a unit's records anew, the journal gets the fate Again before the Frozen
// with the new unit. If that Frozen is missing, the records count as never frozen.
//
// The journal keeps a refused or given-up record with the reason until the caller has written it
// elsewhere (Refused, Forget), so a load with such a record is never reported as fully stored.
//
// # The file
//
// The file is a sequence of frames: four magic bytes, the length, a CRC-32C, a kind and its fields.
// Only frames behind the last sync can be torn. Open drops them, since their units were never sent.
// A broken frame is damage if a later frame records that it was synced, and Open refuses the file.
// A file that has grown is replaced by a shorter one with the state that still counts.
package putlog
