package wal

import "slices"

// A chunk is a run of frames that one call writes. Appenders fill the newest chunk while the
// committer writes older ones. Chunks are reused, so a frame costs no allocation.
type chunk struct {
	start  LSN
	buf    []byte
	synced bool          // a frame of it counts as durable only after a sync
	calls  []func()      // the frames' durable functions, in order
	done   chan struct{} // made for the first waiter; closed when the chunk is durable or failed
}

const (
	firstChunk = 64 << 10 // the capacity of a new chunk
	maxChunk   = 1 << 20  // a chunk above this size takes no further frame
	maxBatch   = 8 << 20  // about the largest number of bytes per sync
	keepChunks = maxBatch/maxChunk + 2
)

func (c *chunk) end() LSN { return c.start + LSN(len(c.buf)) }

func (c *chunk) add(kind Kind, sum uint32, payload []byte, durable func()) {
	at, n := len(c.buf), frameSize(len(payload))
	c.buf = slices.Grow(c.buf, n)[:at+n]
	putFrame(c.buf[at:], kind, sum, payload)
	if durable != nil {
		c.calls = append(c.calls, durable)
	}
}

// queue holds the chunks that are not durable yet, oldest first. Log.mu guards it.
type queue struct {
	end     LSN // the LSN behind the last appended frame
	flight  []*chunk
	pending []*chunk // appenders fill the last one; only the last one can be empty
	free    []*chunk
}

// tail returns the chunk that takes the next frame of n bytes.
func (q *queue) tail(n int) *chunk {
	if last := len(q.pending) - 1; last >= 0 {
		if c := q.pending[last]; len(c.buf) == 0 || len(c.buf)+n <= maxChunk {
			return c
		}
	}
	var c *chunk
	if last := len(q.free) - 1; last >= 0 {
		c, q.free[last] = q.free[last], nil
		q.free = q.free[:last]
	} else {
		c = &chunk{buf: make([]byte, 0, max(firstChunk, n))}
	}
	c.start = q.end
	q.pending = append(q.pending, c)
	return c
}

// take moves pending chunks of about maxBatch bytes at most into flight.
func (q *queue) take() []*chunk {
	n, size := 0, 0
	for n < len(q.pending) && len(q.pending[n].buf) > 0 && size < maxBatch {
		size += len(q.pending[n].buf)
		n++
	}
	q.flight = append(q.flight, q.pending[:n]...)
	left := copy(q.pending, q.pending[n:])
	clear(q.pending[left:])
	q.pending = q.pending[:left]
	return q.flight
}

// landed empties flight and wakes the waiters.
func (q *queue) landed() {
	for i, c := range q.flight {
		c.wake()
		clear(c.calls)
		c.calls, c.buf, c.synced = c.calls[:0], c.buf[:0], false
		if len(q.free) < keepChunks && cap(c.buf) <= 2*maxChunk {
			q.free = append(q.free, c)
		}
		q.flight[i] = nil
	}
	q.flight = q.flight[:0]
}

func (c *chunk) wake() {
	if c.done != nil {
		close(c.done)
		c.done = nil
	}
}

// wait returns a channel that is closed once lsn may be durable.
func (q *queue) wait(lsn LSN) <-chan struct{} {
	c := q.find(lsn)
	if c.done == nil {
		c.done = make(chan struct{})
	}
	return c.done
}

func (q *queue) find(lsn LSN) *chunk {
	for _, chunks := range [2][]*chunk{q.flight, q.pending} {
		for _, c := range chunks {
			if lsn <= c.end() {
				return c
			}
		}
	}
	return q.tail(0) // all frames have landed or are in flight: wait for the next chunk
}

// fail wakes all waiters; none of the queued frames becomes durable.
func (q *queue) fail() {
	for _, chunks := range [2][]*chunk{q.flight, q.pending} {
		for _, c := range chunks {
			c.wake()
		}
	}
	q.flight, q.pending, q.free = nil, nil, nil
}
