package kinesis

import (
	"context"
	"time"
)

// pace counts an event's bytes, of data and partition keys, against the consumer's limit for the
// shard. The next event with records comes when the rate allows it; nothing is refused.
func (u *subscription) pace(bytes int) {
	pause := u.limits.fanOut(u.stream, u.shard, u.key.consumer, bytes)
	if pause > 0 {
		u.resume = time.Now().Add(pause)
	}
}

// paced reports whether the rate forbids records now.
func (u *subscription) paced() bool { return time.Now().Before(u.resume) }

// rest waits until the rate allows records again, or waiting ends. Errors: ctx's.
func (u *subscription) rest(ctx, waiting context.Context) error {
	timer := time.NewTimer(time.Until(u.resume))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-waiting.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
