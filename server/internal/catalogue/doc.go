// Package catalogue is the streams and shards of a data directory: their state, the changes to it,
// and the form of both in the log and in snapshots. Package kinesis decides the changes and answers
// calls from the state; package fsck reads the state alone.
//
// # State
//
// A Catalogue is a state machine over package wal. Memory holds the whole state. The log holds each
// Change as one frame of JSON, with every value that was drawn or measured, so that a replay gives
// the same state. A snapshot is the whole state as JSON. So the names in the json tags, and the
// kinds of changes, are a file format: only add to them.
//
// # Values
//
// A Stream, and the shards and consumers in it, never change once they are published. A change
// replaces the stream by a changed copy. So a reader keeps a stream without a lock, and sees one
// moment of it. Until its change is durable, Stream.Visible returns the value before.
//
// Passing states (CREATING, UPDATING, DELETING) are stored as the time of their end, and derived on
// demand. Times are ms since 1970, unless the name of a field says otherwise.
//
// # Locks
//
// Write is called inside wal.Log.Sequence, Read anywhere. Under the lock the catalogue calls the
// store of the shards, and nothing waits for the disk.
package catalogue
