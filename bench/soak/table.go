package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// head begins bench/soak.md: the commit, the size twice, the time and the cores.
const head = `# A long run of the random suites

Written by "make soak" at commit %s, with RUNNEL_SOAK=%d: about %[2]d times the size of CI's runs.
It took %[3]s on %[4]d cores.

A crash is a power cut on a simulated disk, which loses, tears and reorders unsynced writes, or a
"kill -9" of a real process. After each crash the test looks for everything that was ever
acknowledged or seen. A cell is empty if the test does not count this figure.

| package | test | seeds | crashes | operations | time | result |
|---|---|--:|--:|--:|--:|---|
`

// table is the text of bench/soak.md.
func table(rows []row, commit string, base int, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, head, commit, base, took.Round(time.Minute), runtime.NumCPU())
	var sum row
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %v | %s |\n", r.pkg, r.test, grouped(r.seeds),
			grouped(r.crashes), grouped(r.operations), seconds(r.took), r.result())
		sum.seeds += r.seeds
		sum.crashes += r.crashes
		sum.operations += r.operations
		sum.failed = sum.failed || r.failed
	}
	fmt.Fprintf(&b, "| all | | %s | %s | %s | %v | %s |\n", grouped(sum.seeds),
		grouped(sum.crashes), grouped(sum.operations), seconds(took), sum.result())
	return b.String()
}

// grouped writes a number as "12,000". It returns "" for 0, since the test does not count it.
func grouped(n int) string {
	if n == 0 {
		return ""
	}
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
