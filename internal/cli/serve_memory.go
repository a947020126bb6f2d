package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/usage"
)

// memoryFlag is --memory, with or without =SIZE.
type memoryFlag struct {
	on   bool
	size int64 // bytes; 0: half of what the process may have
}

func (f *memoryFlag) addTo(flags *pflag.FlagSet) {
	flags.Var(f, "memory",
		"keep everything in memory only, until the server ends; =1GiB: at most so much data, and "+
			"further puts are throttled (default: half of the machine's or the container's)")
	flags.Lookup("memory").NoOptDefVal = half
}

// half is the value of --memory alone.
const half = "half"

// String implements pflag.Value.
func (f *memoryFlag) String() string {
	switch {
	case !f.on:
		return ""
	case f.size == 0:
		return half
	}
	return strconv.FormatInt(f.size, 10)
}

// Set implements pflag.Value. The flag had no size once, and was true or false.
func (f *memoryFlag) Set(text string) (err error) {
	*f = memoryFlag{on: true}
	switch text {
	case half, "true":
		return nil
	case "false":
		*f = memoryFlag{}
		return nil
	}
	if f.size, err = usage.ParseSize(text); err != nil {
		return fmt.Errorf("%w, or 1GiB, or no value", err)
	}
	return nil
}

// Type implements pflag.Value.
func (f *memoryFlag) Type() string { return "SIZE" }

// unknownMemory is the limit where the memory of the machine is unknown: elsewhere than on Linux.
const unknownMemory = 4 << 30

// limit returns the most bytes of data.
func (f *memoryFlag) limit() int64 {
	if f.size > 0 {
		return f.size
	}
	if all := availableMemory(os.DirFS("/")); all > 0 {
		return all / 2
	}
	return unknownMemory
}

// availableMemory returns the bytes of memory that the process may have: the machine's, or the
// least limit of its control groups, as a container's. It returns 0 if that is unknown.
func availableMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "MemTotal:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " none")[0], 10, 64) // 0 if it is not there
	least := kib << 10
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // a kernel without groups has none
	for line := range strings.Lines(string(groups)) {
		// NUMBER:CONTROLLERS:PATH, in cgroup v2 0::PATH
		words := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(words) != 3 {
			continue
		}
		switch words[1] {
		case "":
			least = leastLimit(root, "sys/fs/cgroup", words[2], "memory.max", least)
		case "memory":
			least = leastLimit(root, "sys/fs/cgroup/memory", words[2], "memory.limit_in_bytes",
				least)
		}
	}
	return least
}

// leastLimit returns the least of a limit and those of a control group and the groups above it. In
// a container the path may be that of the host, which is not there; then the container's own group
// is the top.
func leastLimit(root fs.FS, mount, group, file string, least int64) int64 {
	for at := path.Join("/", group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(mount, at, file))
		if err == nil { // else "max", or a number near 1<<63 for none
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit > 0 {
				least = min(least, limit)
			}
		}
		if at == "/" {
			return least
		}
	}
}

// warnMemory logs a warning if the bytes of a flag are more than the available ones, unless these
// are unknown. The server starts: it may never have so much data.
func warnMemory(logger *slog.Logger, flag string, size, available int64) {
	if available == 0 || size <= available {
		return
	}
	text := func(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
	logger.Warn(flag+" is more than the machine or the container has: with so much data the "+
		"system would end the process", "memory", text(size), "available", text(available))
}

// boundHeap makes Go collect garbage before the process takes much more memory than its data: Go's
// default takes twice as much. The data's share in garbage collection is small, since their pages
// have no pointers. It does nothing if the environment has a limit. The caller calls undo.
func boundHeap(data int64) (undo func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(data + data/8 + 64<<20)
	return func() { debug.SetMemoryLimit(before) }
}

// errMemoryWord explains a size behind a space, which the shell's reader takes for an argument.
var errMemoryWord = errors.New("--memory takes its size behind =, as --memory=1GiB")

// memoryWord returns an error if an argument looks like the size of --memory.
func (f *memoryFlag) memoryWord(args []string) error {
	if !f.on || len(args) != 1 {
		return nil
	}
	if _, err := usage.ParseSize(args[0]); err != nil {
		return nil //nolint:nilerr // it is another argument
	}
	return errMemoryWord
}
