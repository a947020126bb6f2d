package cli

import (
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

// TestAvailableMemory has the files of machines and containers.
func TestAvailableMemory(t *testing.T) {
	const machine = "MemTotal:       1048576 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no Linux":         {nil, 0},
		"without groups":   {map[string]string{"proc/meminfo": machine}, 1 << 30},
		"not what we know": {map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}, 0},
		"version 2, a limit above": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":   "268435456\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n",
		}, 256 << 20},
		"version 2, a container": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 << 20},
		"version 1, a container with the host's path": {map[string]string{
			"proc/meminfo":     machine,
			"proc/self/cgroup": "5:cpu:/docker/x\n4:memory:/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20},
		"version 1, no limit": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n0::/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n",
		}, 1 << 30},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableMemory(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A limit of more than the available memory makes a warning with both sizes.
func TestMemoryWarning(t *testing.T) {
	for _, c := range []struct {
		size, available int64
		warns           bool
	}{
		{1 << 30, 1 << 30, false}, {1<<30 + 1, 1 << 30, true}, {1 << 40, 0, false},
	} {
		var text strings.Builder
		warnMemory(slog.New(slog.NewTextHandler(&text, nil)), "--memory", c.size, c.available)
		warned := strings.Contains(text.String(), `memory="1024 MiB" available="1024 MiB"`)
		if warned != c.warns || !c.warns && text.Len() > 0 {
			t.Errorf("%d of %d: %q", c.size, c.available, text.String())
		}
	}
}

// TestBoundHeap checks that garbage is collected near the data's limit, and that a limit of the
// environment stays.
func TestBoundHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	for _, c := range []struct {
		set  string
		want int64
	}{{"", 1<<30 + 1<<27 + 64<<20}, {"1TiB", before}} {
		t.Setenv("GOMEMLIMIT", c.set)
		undo := boundHeap(1 << 30)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("with GOMEMLIMIT=%s the limit is %d, want %d", c.set, got, c.want)
		}
		if undo(); debug.SetMemoryLimit(-1) != before {
			t.Errorf("the limit stays %d", debug.SetMemoryLimit(-1))
		}
	}
}

// TestMemoryFlag has the forms of --memory.
func TestMemoryFlag(t *testing.T) {
	for text, want := range map[string]memoryFlag{
		"half": {on: true}, "true": {on: true}, "false": {}, "1GiB": {on: true, size: 1 << 30},
	} {
		f := memoryFlag{on: true, size: 5}
		if err := f.Set(text); err != nil || f != want {
			t.Errorf("%s: %+v, %v; want %+v", text, f, err, want)
		}
	}
	var f memoryFlag
	if f.Set("much") == nil || f.Set("-1") == nil {
		t.Error("a size that is none is taken")
	}
	f = memoryFlag{on: true}
	if f.memoryWord([]string{"1GiB"}) == nil || f.memoryWord([]string{"orders"}) != nil {
		t.Error("only a size behind a space is explained")
	}
}
