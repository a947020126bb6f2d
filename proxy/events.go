package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// The sizes of an event stream's messages, in bytes.
const (
	prelude    = 12          // the message's length, the headers' length, a checksum
	minMessage = prelude + 4 // with the message's checksum
	maxMessage = 24 << 20    // more than the protocol's 16 MiB of payload and 128 KiB of headers
)

// copyEvents copies an event stream to the client, each message as soon as it arrives. When the
// proxy shuts down, the stream ends between two messages, like a subscription after its five
// minutes. cut interrupts a read from the stream.
func (p *Proxy) copyEvents(w http.ResponseWriter, events io.Reader, cut func()) error {
	stop := newStopper(cut)
	defer stop.follow(p.ending)()
	flusher := http.NewResponseController(w)
	to := deadlined{p, w}
	if err := flusher.Flush(); err != nil { // the answer's head, before the first event
		return err
	}
	var head [prelude]byte
	for {
		if _, err := io.ReadFull(events, head[:1]); err != nil {
			if errors.Is(err, io.EOF) || stop.isStopped() {
				return nil
			}
			return err
		}
		if !stop.begin() {
			return nil // the rest of the message is dropped with its first byte
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

// stopper ends a stream between two messages: at once if no message is being copied.
type stopper struct {
	cut func()

	mu      sync.Mutex
	within  bool // a message is being copied
	stopped bool
}

func newStopper(cut func()) *stopper { return &stopper{cut: cut} }

// follow calls stop when ending is closed. The function that it returns ends the goroutine for that
// and waits for it.
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

func (s *stopper) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// begin notes that a message begins, and reports whether to copy it.
func (s *stopper) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.within = !s.stopped
	return s.within
}

// end notes that a message ends, and reports whether to read the next one.
func (s *stopper) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.within = false
	return !s.stopped
}
