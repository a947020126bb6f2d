package cli

import (
	"net"
	"testing"
)

// Programs announce the host that their user gave, with the port that they got.
func TestAnnounced(t *testing.T) {
	for _, c := range []struct{ addr, listens, want string }{
		{"0.0.0.0:0", "[::]:4567", "0.0.0.0:4567"},
		{"[::]:4567", "[::]:4567", "[::]:4567"},
		{":4567", "[::]:4567", "[::]:4567"},
		{"localhost:4567", "127.0.0.1:4567", "localhost:4567"},
		{"127.0.0.1:http", "127.0.0.1:80", "127.0.0.1:80"},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := announced(c.addr, listensAt{addr: at}); got != c.want {
			t.Errorf("%s: %s, want %s", c.addr, got, c.want)
		}
	}
}

// listensAt is a listener that has an address alone.
type listensAt struct {
	net.Listener
	addr net.Addr
}

func (l listensAt) Addr() net.Addr { return l.addr }
