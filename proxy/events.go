package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// prelude is the length of what every message of an event stream begins with: its length, that
// of its headers, and a checksum. minMessage adds the message's own checksum.
const (
	prelude    = 12
	minMessage = prelude + 4
	maxMessage = 24 << 20 // the protocol's 16 MiB of payload and 128 KiB of headers, with room
)

// copyEvents passes an event stream on, message by message, each as soon as it is there. Once
// the proxy is ending, the stream ends between two messages, as if its five minutes were over.
// cut ends reading from the stream.
func (p *Proxy) copyEvents(w http.ResponseWriter, events io.Reader, cut func()) error {
	stop := newStopper(cut)
	defer stop.follow(p.ending)()
	flusher := http.NewResponseController(w)
	to := deadlined{p, w}
	if err := flusher.Flush(); err != nil { // the head, before there is an event
		return err
	}
	var head [prelude]byte
	for {
		if _, err := io.ReadFull(events, head[:1]); err != nil {
			if errors.Is(err, io.EOF) || stop.asked() {
				return nil
			}
			return err
		}
		if !stop.begin() {
			return nil // the byte of a message that nobody will see
		}
		if _, err := io.ReadFull(events, head[1:]); err != nil {
			return err
		}
		length := int64(binary.BigEndian.Uint32(head[:4]))
		if length < minMessage || length > maxMessage {
			return fmt.Errorf("a message of an event stream has %d bytes", length)
		}
		if _, err := to.Write(head[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(to, events, length-prelude); err != nil {
			return err
		}
		if err := flusher.Flush(); err != nil {
			return err
		}
		if !stop.end() {
			return nil
		}
	}
}

// stopper ends a stream between two of its messages: at once if none is under way.
type stopper struct {
	cut func()

	mu      sync.Mutex
	within  bool // a message has begun
	stopped bool
}

func newStopper(cut func()) *stopper { return &stopper{cut: cut} }

// follow stops when ending is closed. The function that it returns ends this, and waits for it.
func (s *stopper) follow(ending <-chan struct{}) (end func()) {
	over := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		select {
		case <-ending:
			s.stop()
		case <-over:
		}
	})
	return func() {
		close(over)
		following.Wait()
	}
}

func (s *stopper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if !s.within {
		s.cut()
	}
}

func (s *stopper) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// begin notes that a message has begun, and reports whether it is to be passed on.
func (s *stopper) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.within = !s.stopped
	return s.within
}

// end notes that a message has ended, and reports whether there may be more.
func (s *stopper) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.within = false
	return !s.stopped
}
