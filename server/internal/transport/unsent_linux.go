package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is the number of bytes that the system takes of an answer beyond those that are on
// their way to the client. By default it takes megabytes at once, and then nothing until a third of
// these has gone. The progress of a slow client could not be seen then: see package budget.
const maxUnsent = 128 << 10

// limitUnsent sets maxUnsent, or another bound, for a connection. A failure costs nothing but the
// sight of slow clients.
func limitUnsent(conn net.Conn, most int) {
	control(conn, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, most)
	})
}

// unsent returns the bytes of a connection that the system has taken, but the other side has not.
// 0 if they are not known.
func unsent(conn net.Conn) (bytes int) {
	control(conn, func(fd int) {
		bytes, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	})
	return bytes
}

func control(conn net.Conn, with func(fd int)) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { with(int(fd)) })
	}
}
