//go:build unix

package transport

import "golang.org/x/sys/unix"

// FileLimit returns the number of files that the process may open.
func FileLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 20
	}
	return int(min(limit.Cur, 1<<20))
}
