package bootclock

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// bootID is random(4)'s boot_id, which the kernel draws once for each boot. A time namespace may
// shift CLOCK_BOOTTIME (time_namespaces(7)); the shift is then a part of bootID, since moments
// there do not compare with those of elsewhere.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || sinceBoot() == 0 {
		return ""
	}
	offsets, _ := os.ReadFile("/proc/self/timens_offsets") // a kernel without it has none
	return strings.TrimSpace(string(id)) + shift(string(offsets))
})

// shift returns the shift of CLOCK_BOOTTIME in a process's timens_offsets, or "" for none.
func shift(offsets string) string {
	for line := range strings.Lines(offsets) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "boottime" && (f[1] != "0" || f[2] != "0") {
			return "+" + f[1] + "." + f[2]
		}
	}
	return ""
}
