package producer

import (
	"math/rand/v2"
	"time"
)

// backoff returns how long to wait before another attempt after n of them failed: low for the
// first, doubled with each to at most high, less up to a half at random so that what failed
// together does not come back together. n is at least 1.
func backoff(n int, low, high time.Duration, random *rand.Rand) time.Duration {
	wait := high
	if shift := min(n-1, 30); low < high>>shift {
		wait = low << shift
	}
	return wait - time.Duration(random.Int64N(int64(wait)/2+1))
}
