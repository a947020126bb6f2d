// Package table derives tables from an archive: each record in the object of its own minute, hour
// or day, always at the same place.
//
// # Layout
//
// The archive's chain of links is the truth, and a table is made of it, any number of times:
//
//	tables/<table>/_layout.json
//	tables/<table>/_progress/<creation ms>-<shard id>.json
//	tables/<table>/2020/02/02/15/55/<creation ms>-<shard id>-<previous end>.ndjson.gz
//
// For each link, and each minute in it, there is one object. Its name depends on the link, the
// minute and nothing else, and so do its lines, which are those of the link with that arrival time,
// in UTC. Programs that derive one link, such as a worker, its successor and a worker that slept,
// write the same object. So a plain put is enough, and a listing shows each record once. A record
// that came late is in its own minute.
//
// The layout is fixed by the first use, and so is the stream: its shards and those of later streams
// of the same name are in one table.
//
// The progress of a shard is the position up to which its links are in the table. It is written
// behind the objects, so it may lag and never leads.
//
// # Programs
//
// A Deriver follows the writers of one process (archive.Config.OnTip), or the whole archive. Verify
// compares a table with its archive.
package table
