package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/runnel-stream/runnel/internal/exit"
)

// checkAddr checks the form of a flag's HOST:PORT and returns the host. It asks no name server: a
// host name that does not resolve is a fault outside, as a port in use is.
func checkAddr(ctx context.Context, flag, addr string) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", exit.Usage("%s %s: want HOST:PORT", flag, addr)
	}
	if looksNumeric(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", exit.Usage("%s %s: the host is %q: want an IP address or a host name",
				flag, addr, host)
		}
	}
	// The names of services, as http, are ports too.
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return "", exit.Usage("%s %s: the port is %q: want 0 to 65535", flag, addr, port)
	}
	return host, nil
}

// looksNumeric reports whether a host can only be an IP address: it has a colon, or its last label
// is a number, which no top-level domain is.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Contains(host, ":") || last != "" && strings.Trim(last, "0123456789") == ""
}

// listen opens the port of a flag's address, which checkAddr has passed.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; another program listens there: stop it, or take another port", err)
	}
	if err != nil {
		return nil, exit.Outside(fmt.Errorf("%s %s: %w", flag, addr, err))
	}
	return listener, nil
}

// announced returns HOST:PORT for people: the host as a flag's addr has it, and the listener's
// port. The listener itself shows 0.0.0.0 as [::], since it takes IPv6 too, and a host name as one
// of its addresses.
func announced(addr string, listener net.Listener) string {
	host, _, _ := net.SplitHostPort(addr) // checkAddr has passed it
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if host == "" || err != nil {
		return listener.Addr().String()
	}
	return net.JoinHostPort(host, port)
}
