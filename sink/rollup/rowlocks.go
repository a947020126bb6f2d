package rollup

import (
	"context"
	"hash/crc32"
)

// rowLocks serialise the updates of a row by one process. Without them the shards of a worker would
// fail each other's conditions all the time. A lock is shared by several rows, and a goroutine
// holds at most one.
type rowLocks [256]chan struct{}

func newRowLocks() rowLocks {
	var l rowLocks
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits for the row's turn. The caller calls unlock if there is no error.
func (l *rowLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	turn := l[crc32.ChecksumIEEE([]byte(key))%uint32(len(l))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
