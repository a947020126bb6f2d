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

// limitUnsent sets maxUnsent for a connection. A failure costs nothing but the sight of slow
// clients.
func limitUnsent(conn net.Conn) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
	})
}
