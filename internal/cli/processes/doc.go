// Package processes has the tests that run the command as real processes: killed with -9, stopped,
// without a disk, beside each other. They take minutes, and have a time limit of their own beside
// package cli's.
package processes
