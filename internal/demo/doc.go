// Package demo shows the whole pipeline on one machine, under failures and reshards.
//
// One run starts a server as a process of its own, an ordered producer, and a fleet of workers that
// archive the stream. While records flow, shards are split and merged, the server is killed with -9
// and started again, and one worker is stopped as by a crash. At the end the archive is compared
// with the events, and that comparison is the verdict.
package demo
