package server

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/budget"
)

// mostStreams is the number of calls over HTTP/2 that may be under way. Over HTTP/1.1 the
// connections bound them. Over HTTP/2 one connection begins 100, resets them and begins others
// while the first still run (CVE-2023-44487), and each holds some 40 KiB besides its body.
//
// Further calls are refused before their bodies are read. Beyond as many refused ones they are
// dropped unanswered, since a client that reads nothing would hold the refusals, too.
const mostStreams = 2048

// crowded is the error of a call beyond mostStreams, and a budget.ErrFull.
type crowded struct{}

func (crowded) Error() string {
	return fmt.Sprintf("more than %d calls over HTTP/2 are under way", mostStreams)
}

func (crowded) Is(target error) bool { return target == budget.ErrFull }

// crowd counts the calls over HTTP/2. Event streams do not count, since consumers have one for each
// shard, and the registered consumers bound them.
//
// A refused call counts apart. The server takes the rest of its body, for up to five seconds, so a
// client without a key would otherwise take the places of those that have one.
type crowd struct{ calls, refused atomic.Int64 }

// many is a number of calls whose memory is worth a relief.
const many = 256

// place is a call's place in the crowd. The zero value is none.
type place struct {
	in        *crowd
	isMany    bool // one of many
	isRefused bool // counted in crowd.refused
}

// enter gives a request over HTTP/2 its place. An error means that it is to be refused.
func (c *crowd) enter(r *http.Request) (place, error) {
	if r.ProtoMajor < 2 {
		return place{}, nil
	}
	n := c.calls.Add(1)
	p := place{in: c, isMany: n > many}
	if n > mostStreams {
		p.refuse()
		return p, crowded{}
	}
	return p, nil
}

// refuse moves a call to the refused ones. It drops the call if there are too many of them. It may
// be called again.
func (p *place) refuse() {
	if p.in == nil || p.isRefused {
		return
	}
	p.in.calls.Add(-1)
	n := p.in.refused.Add(1)
	p.isRefused, p.isMany = true, p.isMany || n > many
	if n > mostStreams {
		p.leave()
		panic(http.ErrAbortHandler)
	}
}

// flush sends the rest of the answer from net/http's buffer, if there are many calls. Otherwise
// net/http would send it after the handler's end, uncounted, and a client that reads nothing would
// hold thousands of ended calls.
func (p *place) flush(w http.ResponseWriter) {
	if p.in != nil && p.isMany {
		_ = http.NewResponseController(w).Flush() // an error: the client has gone
	}
}

// leave gives the place back. It may be called again.
func (p *place) leave() {
	switch {
	case p.in == nil:
		return
	case p.isRefused:
		p.in.refused.Add(-1)
	default:
		p.in.calls.Add(-1)
	}
	p.in = nil
}
