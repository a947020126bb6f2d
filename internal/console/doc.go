// Package console holds a command's standard input, output and error, the flags that decide how
// much is printed there, and the progress lines on a terminal. It also formats numbers for people.
package console
