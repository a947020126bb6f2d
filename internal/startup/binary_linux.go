package startup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseBinary unmaps the pages of the binary's code and constants (madvise(2), MADV_DONTNEED).
// Only read-only mappings are released: a written page would lose its content. So a debugger has to
// set its earlier breakpoints again.
func releaseBinary() (err error) {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, maps.Close()) }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		start, end := constants(lines.Text(), binary)
		if start == end {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, start, end-start,
			unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("release %x-%x of %s: %w", start, end, binary, errno)
		}
	}
	return nil
}

// constants returns the addresses [start, end) of a line of /proc/PID/maps if it maps the file
// without the right to write. For other lines both are 0.
func constants(line, file string) (start, end uintptr) {
	// ADDRESS-ADDRESS RIGHTS OFFSET DEVICE INODE, spaces, NAME
	head, is := strings.CutSuffix(line, " "+file)
	words := strings.Fields(head)
	if !is || len(words) != 5 || strings.Contains(words[1], "w") {
		return 0, 0
	}
	from, to, _ := strings.Cut(words[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	last, err2 := strconv.ParseUint(to, 16, 64)
	if err != nil || err2 != nil {
		return 0, 0
	}
	return uintptr(first), uintptr(last)
}
