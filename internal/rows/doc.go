// Package rows prints the results of commands, as text or as JSON.
//
// A result is one struct. Its fields are the line of JSON. Its method gives the text: Cells for a
// row of a table, WriteText for a report of several lines. Both forms come from the same fields, so
// they show the same figures.
package rows
