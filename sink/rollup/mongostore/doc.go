// Package mongostore keeps the rows of a rollup in a MongoDB collection.
//
// The field "_id" is the text of rollup.Definition.RowKey. A document has these fields besides:
//
//   - one for each key and column of the definition: a 64-bit integer for an Int, a double for a
//     Double, a string for a Text;
//   - bucket (date): the bucket's beginning; absent without a bucket;
//   - last_order (string): the rollup.Order of the last record;
//   - version (64-bit integer) and entries (document of strings): see rollup.StoredRow;
//   - expires (date): absent without a TTL. Store.Prepare then makes an index by which the server
//     deletes such documents.
//
// A write replaces the whole document. The document with the id "\table" has the table's setup. A
// second collection, with "_bad" behind the name, has the bad records; see Store.KeepBad.
//
// Writes are acknowledged once a majority has them in its journal, and reads go to the primary and
// see only what a majority has: a row that is rolled back must not say that it has a record. The
// tests run on mongo-java-server, a stand-in that ignores both.
package mongostore
