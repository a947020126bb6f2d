// Package fsck checks a data directory that no server uses, and changes nothing: what runnel
// fsck is.
//
// It reads the directory as a start of the server would, with the server's own state machines,
// so that what it says of the streams, the shards and the tables is what a server would serve;
// and it goes on where a start would stop, to tell how much is damaged. Beyond a start it reads
// every segment to its end and compares what the catalogue, the records and the folders know of
// one another.
package fsck
