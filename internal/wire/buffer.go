package wire

import (
	"runtime"
	"sync"
)

// buffers hold the buffers of past calls, so that not every call allocates. A class has buffers of
// four times the size of the class before, and from steps on of twice. So a short body never takes
// a long buffer, whose memory it has not been given.
var buffers [10]sync.Pool // up to 4 MiB

const steps = 64 << 10 // bytes

const shortest = 1 << 10 // bytes

// longest are buffers of the last class: whole MiB, so that a buffer fits the next answer, too,
// which is rarely of the same length. These are few.
var longest = make(chan *[]byte, 4)

const (
	longestStep = 1 << 20
	longestKept = MaxBody + longestStep // bytes
)

// classOf returns the class of buffers for n bytes, and the size of these; 0 for the longest ones.
func classOf(n int) (class, size int) {
	size = shortest
	for class = range buffers {
		if n <= size {
			return class, size
		}
		if size < steps {
			size *= 2
		}
		size *= 2
	}
	return len(buffers), 0
}

// bufferFor returns an empty buffer for n bytes.
func bufferFor(n int) *[]byte {
	class, size := classOf(n)
	if class < len(buffers) {
		if buffer, ok := buffers[class].Get().(*[]byte); ok {
			*buffer = (*buffer)[:0]
			return buffer
		}
		return new(make([]byte, 0, size))
	}
	select {
	case buffer := <-longest:
		if cap(*buffer) >= n {
			*buffer = (*buffer)[:0]
			return buffer
		}
	default:
	}
	return new(make([]byte, 0, (n+longestStep-1)/longestStep*longestStep))
}

// giveBack gives a buffer back for other calls.
func giveBack(buffer *[]byte) {
	class, size := classOf(cap(*buffer))
	switch {
	case class < len(buffers) && cap(*buffer) == size:
		buffers[class].Put(buffer)
	case class == len(buffers) && cap(*buffer) <= longestKept:
		select {
		case longest <- buffer:
		default:
		}
	}
}

// long is the length of a document from which on its parsing has to wait for its turn.
const long = 256 << 10

// turns are those who parse long documents at the same time. Half of the processors stay free of
// them, since a small call that waits behind ten milliseconds of each of them waits too long.
var turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// TakeTurn waits until the call may parse, sum or encode a document of n bytes. The caller calls
// done.
func TakeTurn(n int) (done func()) {
	if n < long {
		return func() {}
	}
	turns <- struct{}{}
	return func() { <-turns }
}
