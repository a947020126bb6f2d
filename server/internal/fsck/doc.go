// Package fsck checks a data directory that no server uses, and repairs it. It implements runnel
// fsck. A check changes nothing.
//
// It reads the directory as a start of the server would, with the server's own state machines, so
// that its findings about the streams, the shards and the tables match the data that a server would
// serve. Where a start would stop, fsck goes on, to show how much is damaged. Beyond a start it
// reads every segment to its end and compares the catalogue, the records and the folders with one
// another.
//
// A repair reads in the same way, with machines that take later frames although earlier ones are
// lost, and writes their state as a new snapshot: see Repair. losses.go is the form of its list.
package fsck
