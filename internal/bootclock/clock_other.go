//go:build !linux

package bootclock

import "time"

func sinceBoot() time.Duration { return 0 }

func bootID() string { return "" }
