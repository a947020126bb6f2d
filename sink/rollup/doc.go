// Package rollup folds JSON records into rows by key and time bucket, so that a database gets one
// row for many records.
//
// A Definition names the keys, the bucket and the columns: counts, sums, smallest and largest
// values, and the values of the last record. A Folder folds records by it in memory. Its rows are
// ordered by key and bucket, so writers that write them in this order lock them in the same order.
// Definition.Merge merges such a row into the one that the database already has.
//
// The result does not depend on where batches end. A record is read again after a failure, and the
// batch that holds it may then end elsewhere; so each operation gives the same row however the
// records are cut. Three cases are weaker: a sum of doubles rounds after each addition, a sum at
// the edge of its type may overflow in one cut and not in another, and the functions of an Own
// column must be associative themselves.
//
// Last needs an order of all records that no cut changes. Order is that: the record's own time
// first, then its arrival, its shard and its position. The clocks of programs and shards differ, so
// the last record need not be the one that was put last; but every cut has the same last record.
//
// A record that does not fit the definition is a *BadError, and changes no row: it is not JSON,
// lacks a field, or has a value that the column cannot hold. The error names the field. No value is
// rounded to fit or replaced, except that doubles have the precision of doubles.
//
// Rollup is the sink.Sink of a SQL database: it merges the rows of each batch into a table, in the
// transaction that moves the shard's position. Each record counts once.
//
// Rows writes the rows of a consumer's batches to a database that has no transactions over several
// rows, a RowStore: dynamostore or mongostore. Each record counts once there, too.
package rollup
