// Package outbox has the table in which programs commit records together with their data, for a
// relay that puts them into a stream, in order per key.
//
// # Order
//
// A relay sends the rows of one key by their ids. So two transactions with rows of one key must
// draw their ids in the order in which they commit. Those that update the row of the key's entity
// first have that already: the entity's lock makes them follow one another. All others need Insert,
// the SQL function of Schema, or its trigger. Each takes three steps:
//
//  1. It takes a lock on the key's hash until the transaction ends. Several keys of one Insert are
//     locked in the order of the hashes; in another order, two transactions could wait for each
//     other for ever.
//  2. It takes a transaction id, so that the database knows the transaction as open before it has a
//     row id.
//  3. It draws the row's id. An identity column draws its number before a BEFORE trigger runs, so
//     the trigger draws a new one: with the lock alone, a row that had waited would come out before
//     the row that it waited for.
//
// SQLite has one writer at a time and needs none of this.
//
// The lock's number is made of documented functions, so that every language can take it:
//
//	('x' || substr(md5('runnel.outbox ' || KEY), 1, 16))::bit(64)::bigint
package outbox
