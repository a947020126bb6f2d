// Package sqlsink is a sink.Sink over a SQL database: a handler's effects and the position that
// they reach are committed in one transaction, so each record takes effect exactly once.
//
// It covers the effects of the handler's transaction. It does not cover mails, HTTP calls and
// writes to other databases: a handler's call may be repeated, and its transaction may fail after
// such an effect.
//
// # How a batch is committed
//
// A batch has all records at hand: it is small and quick when the shard is idle, and has up to
// 10,000 records when it is behind. For each batch the writer begins a transaction, moves the
// shard's row in the table runnel_position from the position that it knows to the new one, calls
// the handler, and commits. Of two workers that both believe that they hold a shard, the second one
// waits for the row, finds it moved, and has then done no work. It adopts the row's position, with
// the reader's state there, and reads on from it. So no record takes effect twice, whatever the
// lease table says.
//
// PostgreSQL ends a transaction after its client has been silent for Config.Failover. So a process
// that is frozen in the middle of a batch does not hold up its successor. SQLite has no such
// timeout: a process that is frozen within a transaction blocks all writers of the file.
//
// Through a PgBouncer in transaction mode, pgx works without prepared statements: add
// default_query_exec_mode=exec to the URL, or set max_prepared_statements from PgBouncer 1.21 on.
//
// # Errors
//
// After a serialization failure, a deadlock or a lost connection the batch is repeated in a new
// transaction; Dialect.Moment lists such errors. A connection that is lost in COMMIT leaves the
// outcome open: the writer reads its row, which says it. After another error of the handler, or a
// panic, the batch is repeated with growing pauses, and no later record of the shard comes before
// it. With Poison DeadLetter, a batch that has failed five times is divided, under savepoints of
// one transaction, down to the records that fail: these go to the table runnel_dead with their
// errors, and the others take effect.
//
// # The database is the truth
//
// The position in the database decides where reading begins; the lease's checkpoint counts for
// nothing. If the database is restored from a backup, its effects and its positions are of the same
// moment, and the workers go on from there by themselves as long as the stream has the records,
// also through shards that have split or merged since. Restore in one transaction, or with the
// workers stopped: a worker that meets the positions of the backup beside effects of today cannot
// know it. Where the stream no longer has the records, the shard stops with a *GapError;
// Config.AllowGaps lets it go on.
package sqlsink
