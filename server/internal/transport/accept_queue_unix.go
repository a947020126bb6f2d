//go:build unix

package transport

import (
	"errors"
	"net"
	"syscall"
)

// maxQueue is more than the length of any accept queue: net.core.somaxconn is 4,096 by default.
const maxQueue = 1 << 16

// emptyQueue closes the connections in a listener's accept queue, and returns their number. It
// waits for none. A listener without a socket has no such queue.
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
