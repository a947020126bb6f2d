//go:build !unix

package transport

// FileLimit returns the number of files that the process may open.
func FileLimit() int { return 1 << 20 }
