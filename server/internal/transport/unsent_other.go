//go:build !linux

package transport

import "net"

// limitUnsent is for Linux.
func limitUnsent(net.Conn) {}
