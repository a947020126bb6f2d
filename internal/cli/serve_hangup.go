package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/server"
)

// takeHangUps returns a channel of SIGHUPs, which would end the process otherwise, until the caller
// calls stop. One that comes before the server is up waits in the channel.
func takeHangUps() (hangups chan os.Signal, stop func()) {
	hangups = make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups, func() { signal.Stop(hangups) }
}

// readKeysAgain reads the file of --auth at each SIGHUP until ctx ends. A file that cannot be read
// changes nothing.
func (f *serveFlags) readKeysAgain(
	ctx context.Context, con *console.Console, srv *server.Server, hangups <-chan os.Signal,
) {
	file, signed := strings.CutPrefix(f.auth, "sigv4=")
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if !signed {
			con.Say("runnel serve: SIGHUP: there is nothing to read again without --auth " +
				"sigv4=FILE")
			continue
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = srv.SetCredentials(server.Credentials(text))
		}
		if err != nil {
			con.Logger().Error("the keys stay as they were", "auth", f.auth, "error", err)
			continue
		}
		con.Say("runnel serve: the keys were read again from %s", file)
	}
}
