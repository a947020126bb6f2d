//go:build unix

package transport

import (
	"errors"
	"net"
	"syscall"
)

// maxQueue is more than an accept queue holds: net.core.somaxconn is 4,096 by default.
const maxQueue = 1 << 16

// emptyQueue closes the connections that wait in a listener's accept queue, and returns how many
// there were. It does not wait for any. A listener that has no socket has no such queue.
func emptyQueue(listener net.Listener) (closed int, err error) {
	socket, ok := listener.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		for closed < maxQueue {
			var conn int
			conn, _, err = syscall.Accept(int(fd)) // the listener's descriptor does not block
			switch {
			case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.ECONNABORTED):
				continue
			case errors.Is(err, syscall.EAGAIN):
				err = nil
				return
			case err != nil:
				return
			}
			_ = syscall.Close(conn)
			closed++
		}
	})
	return closed, errors.Join(controlErr, err)
}
