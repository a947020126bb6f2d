// Package fsck checks a data directory that no server uses, and changes nothing. It implements
// runnel fsck.
//
// It reads the directory as a start of the server would, with the server's own state machines, so
// that its findings about the streams, the shards and the tables match the data that a server would
// serve. Where a start would stop, fsck goes on, to show how much is damaged. Beyond a start it
// reads every segment to its end and compares the catalogue, the records and the folders with one
// another.
package fsck
