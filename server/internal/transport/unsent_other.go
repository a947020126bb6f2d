//go:build !linux

package transport

import "net"

const maxUnsent = 0 // unused

// limitUnsent is for Linux.
func limitUnsent(net.Conn, int) {}

// unsent is known on Linux.
func unsent(net.Conn) int { return 0 }
