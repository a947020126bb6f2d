// Package archive stores the records of streams in a folder, or in any other Store, each one
// exactly once and in order, and proves it.
//
// # Layout
//
// A shard's records are in a chain of objects. Each object is a link that goes on where the one
// before it ended:
//
//	<stream>@<creation time in ms>/<shard id>/<previous end>.ndjson.gz
//
// The name contains only the previous end, in runnel.Position's order-preserving form. It contains
// no first record, no number of records, no clock and no writer. The first link's previous end is
// runnel.Start, whatever position its writer began at, so two beginnings cannot make two heads. The
// last link of a closed shard ends at runnel.End.
//
// An object is gzip. Its first member is empty and carries the Link as JSON in the header's extra
// field; a link beyond 64 KiB goes on in further empty members. The last member holds the records,
// one JSON object a line (AppendRecord); a link without records has none. So zcat shows the records
// alone.
//
// The header has these fields:
//
//	format, version, form        runnel.archive, 1 to 3, object
//	stream, created, shardId     where it belongs
//	previous, end                the positions that it goes on after and reaches
//	count, bytes, crc32c         of the records' lines
//	writer, nonce                the writer, and a random text for the attempt
//	firstArrival, lastArrival    of the records; not in a link without
//	mapped, dropped              Config.Map was used, and dropped so many records
//	parents                      in a shard's first link: where its parents ended
//	gap                          at the link's beginning: trimmed before it could be read
//	state                        version 2: the reader's state at the end, in base64
//	change                       version 3, in the place of state: base and delta, see Change
//
// The state is the reader's own (sink.Batch). The next reader, or a writer that lost a race, uses
// it to find doubles of the archived records and drop them. It is part of the commit because only
// then its position is certain to be the commit's. A link without a state is written as version 1,
// which older programs read. A program that does not know a link's version refuses the link, and so
// the shard.
//
// A state may have megabytes, however small the link. So most links hold its change since the link
// before, and at least every 64th holds the whole state. A reader that goes on from a link applies
// the changes from the link's base on. If a link is missing or damaged there, the reader gets an
// error, never an empty state.
//
// # Why each record is there exactly once
//
// A commit creates the next link only if no object has its name. Two writers that know the same tip
// want the same name, so one of them wins. The other one reads the link of the winner, walks on to
// the tip, discards its own records and reads on from the adopted end (*sink.MovedError), with the
// state of the winner's reader there. The loser's discarded records are then either in the links
// that it adopted, or they come again. A writer whose answer was lost finds its own nonce in the
// object, and so knows that it had won. It makes no difference how batches are cut, how clocks run
// and how many workers believe that they hold the shard.
//
// The naive way is to name an object after the records in it. It fails as soon as two workers cut
// their batches differently: the names differ, both objects are created, and the overlap is there
// twice.
//
// The chain is the truth at a start as well: the checkpoint and its token only say where to look. A
// checkpoint that is ahead of the chain is an error (*AheadError), since going on from it would
// leave a hole.
//
// The archive never deletes a link: without the name, a writer that slept meanwhile could create
// the link anew.
//
// # Reading and proving
//
// Open reads an archive back. Verify checks it: by itself, and against the records that were put.
package archive
