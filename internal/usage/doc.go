// Package usage checks a command's words and names the fix for a wrong one.
//
// It refuses surplus and missing arguments, suggests the command or flag that a misspelt one was
// meant to be, and reads sizes such as 64MiB.
package usage
