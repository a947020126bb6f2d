package kinesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
)

// missingStream is the error that a stream is not there. It is an *wire.Error for whoever
// answers it, and says which stream was meant.
type missingStream struct {
	answer *wire.Error
	key    streamKey
}

func (e *missingStream) Error() string { return e.answer.Error() }

// Unwrap returns what the caller is answered.
func (e *missingStream) Unwrap() error { return e.answer }

// maxHints bounds how many streams are remembered that a hint was given about.
const maxHints = 256

// hints are what was logged about streams that are somewhere else than where they are looked
// for. A client that asks again and again gets one line.
type hints struct {
	mu    sync.Mutex
	given map[hint]bool
}

// hint is a stream that a call from one world has looked for in the same or another one.
type hint struct {
	from wire.World
	key  streamKey
}

// first reports whether it is the first time that this hint is given, as far as is known.
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

// hintElsewhere logs, if a call was refused because its stream is not there, where else there
// is one of that name. AWS's answer tells the account alone; nearly always it is the client
// that was given the wrong region, or the key of another account.
func (s *Service) hintElsewhere(ctx context.Context, from wire.World, err error) {
	var missing *missingStream
	if !errors.As(err, &missing) {
		return
	}
	elsewhere := s.worldsOf(missing.key.name, from)
	if len(elsewhere) == 0 || !s.hints.first(hint{from, missing.key}) {
		return
	}
	s.cfg.Logger.WarnContext(ctx, "a stream that was asked for is not in the caller's account and "+
		"region, but there is one of that name elsewhere: check the access key id and the region "+
		"of the client", "stream", missing.key.name, "caller", worldText(from),
		"elsewhere", strings.Join(elsewhere, ", "))
}

// worldsOf returns the worlds, other than one, that have a stream of the name now.
func (s *Service) worldsOf(name string, but wire.World) []string {
	c := s.catalogue
	c.mu.RLock()
	defer c.mu.RUnlock()
	now := s.clock.read()
	var worlds []string
	for key, st := range c.streams {
		if key.name == name && key.world != but && !st.gone(now) {
			worlds = append(worlds, worldText(key.world))
		}
	}
	slices.Sort(worlds)
	return worlds[:min(len(worlds), 5)]
}

func worldText(world wire.World) string {
	return "account " + world.Account + " region " + world.Region
}
