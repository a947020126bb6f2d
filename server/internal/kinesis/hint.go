package kinesis

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// missingStream is the error that a stream is not there. It wraps the *wire.Error for the client,
// and names the stream of the request.
type missingStream struct {
	answer *wire.Error
	key    catalogue.Key
}

func (e *missingStream) Error() string { return e.answer.Error() }

// Unwrap returns the error for the client.
func (e *missingStream) Unwrap() error { return e.answer }

// maxHints bounds the number of remembered hints.
const maxHints = 256

// hints remembers the logged hints about streams in another world than the one of the call. A
// client that asks again and again gets one line.
type hints struct {
	streams *streams
	logger  *slog.Logger

	mu    sync.Mutex
	given map[hint]bool
}

// hint is a pair of a calling world and a stream that was not found.
type hint struct {
	from wire.World
	key  catalogue.Key
}

// first reports whether this hint was not given before, as far as is remembered.
func (h *hints) first(of hint) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.given[of] {
		return false
	}
	if h.given == nil || len(h.given) >= maxHints {
		h.given = make(map[hint]bool)
	}
	h.given[of] = true
	return true
}

// elsewhere logs other worlds with a stream of that name, after a call was refused because its
// stream is not there. AWS's answer names the account alone, but the usual cause is a client with
// the wrong region, or the key of another account.
func (h *hints) elsewhere(ctx context.Context, from wire.World, err error) {
	var missing *missingStream
	if !errors.As(err, &missing) {
		return
	}
	elsewhere := h.worldsOf(missing.key.Name, from)
	if len(elsewhere) == 0 || !h.first(hint{from, missing.key}) {
		return
	}
	h.logger.WarnContext(ctx, "a stream that was asked for is not in the caller's account and "+
		"region, but there is one of that name elsewhere: check the access key id and the region "+
		"of the client", "stream", missing.key.Name, "caller", worldText(from),
		"elsewhere", strings.Join(elsewhere, ", "))
}

// worldsOf returns the other worlds that have a stream of the name now.
func (h *hints) worldsOf(name string, but wire.World) []string {
	var worlds []string
	h.streams.catalogue.Read(func() {
		now := h.streams.clock.read()
		for st := range h.streams.catalogue.All() {
			if st.Name == name && st.World != but && !st.Gone(now) {
				worlds = append(worlds, worldText(st.World))
			}
		}
	})
	slices.Sort(worlds)
	return worlds[:min(len(worlds), 5)]
}

func worldText(world wire.World) string {
	return "account " + world.Account + " region " + world.Region
}
