// Package archive keeps the records of streams in a folder or a bucket, each one exactly once
// and in order, and proves it.
//
// # Layout
//
// A shard's records stand in a chain of objects, each a link that goes on where the one before
// it ended:
//
//	<stream>@<creation time in ms>/<shard id>/<previous end>.ndjson.gz
//
// The previous end, in runnel.Position's order-preserving form, is all that the name is made
// of: not the first record, the number of records, a clock or the writer. The first link's
// previous end is runnel.Start, whatever position its writer began at, so two beginnings
// cannot make two heads. The last link of a closed shard ends at runnel.End.
//
// An object is gzip. Its first member is empty and carries the Link as JSON in the header's
// extra field; a link beyond 64 KiB goes on in further empty members. The last member holds the
// records, one JSON object a line (AppendRecord); a link without records has none. So zcat shows
// the records and nothing else.
//
// The header is what the link says of itself:
//
//	format, version, form        runnel.archive, 1 to 3, object
//	stream, created, shardId     where it belongs
//	previous, end                the positions that it goes on after and reaches
//	count, bytes, crc32c         of the records' lines
//	writer, nonce                who committed, and which attempt
//	firstArrival, lastArrival    of the records; not in a link without
//	parents                      in a shard's first link: where its parents ended
//	gap                          at the link's beginning: trimmed before it could be read
//	state                        version 2: the reader's state at the end, in base64
//	change                       version 3, in the place of state: base and delta, see Change
//
// The state is the reader's own (sink.Batch): by it the next reader, or a writer that lost a
// race, knows the doubles of what stands here and drops them. It is in the commit since nothing
// beside it can be of the same position. A link without one is written as version 1, which older
// programs read. A program that does not know a link's version refuses the link, and so the shard.
//
// A state may have megabytes, however small the link. So most links hold its change since the link
// before, and at least every 64th the whole state. A reader that goes on from a link folds the
// changes from the link's base on; a link that is missing or damaged there is an error, never an
// empty state.
//
// # Why each record stands exactly once
//
// A commit creates the next link only if no object has its name. Two writers that know the
// same tip want the same name, so one of them wins and the other one learns it: it reads what
// stands there, walks on to the tip, discards what it holds and reads on from the adopted end
// (*sink.MovedError), knowing what the winner's reader knew there. That one's records are then
// either in the links that it adopted, or not yet read by anyone. A writer whose answer was lost
// finds its own nonce in the object, and knows that it had won. How batches are cut, what the
// clocks say and how many workers believe that they hold the shard do not matter.
//
// The naive way, naming an object after the records in it, fails as soon as two workers cut
// their batches differently: the names differ, both stand, and the overlap stands twice.
//
// The chain is the truth at a start as well: the checkpoint and its token only say where to
// look. A checkpoint that is ahead of the chain is an error (*AheadError), since going on from
// it would leave a hole.
//
// Nothing is ever deleted: the absence of a name would let a writer that slept through it
// create the link anew.
//
// # Reading and proving
//
// Open reads an archive back. Verify checks it: by itself, and against what was put.
package archive
