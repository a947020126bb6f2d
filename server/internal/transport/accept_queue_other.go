//go:build !unix

package transport

import (
	"net"
	"time"
)

// emptyQueue closes the connections in a listener's accept queue, and returns their number. It
// waits for a moment to see that there are no more.
func emptyQueue(listener net.Listener) (closed int, err error) {
	if _, ok := listener.(interface{ SetDeadline(t time.Time) error }); !ok {
		return 0, nil
	}
	defer setDeadline(listener, time.Time{})
	for {
		setDeadline(listener, time.Now().Add(100*time.Millisecond))
		conn, err := listener.Accept()
		if err != nil {
			return closed, nil //nolint:nilerr // the deadline has passed: the queue is empty
		}
		_ = conn.Close()
		closed++
	}
}
