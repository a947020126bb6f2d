// Package input reads records and names from the lines of files and of standard input.
//
// A Format finds the partition key of a line, and optionally its explicit hash key and its weight,
// in NDJSON, CSV or words. A wrong line is an error with the file's name and the line's number, and
// with the exit status of wrong usage. Reading ends with its context, also while a terminal or a
// pipe delivers nothing.
package input
