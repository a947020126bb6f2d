package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/producer"
)

// errBusy: every place for a producer is taken by a stream that is being put into.
var errBusy = errors.New("too many streams at a time")

// streams is the producers, one for each stream, made on first use. It is safe for concurrent
// use.
type streams struct {
	limit int
	open  func(stream string) (*producer.Producer, error)

	// No call is made under mu but open, which sends nothing.
	mu struct {
		sync.Mutex
		byName map[string]*stream
		uses   uint64 // a clock for stream.used
		closed bool
	}
}

// stream is a stream's producer and who uses it.
type stream struct {
	name     string // or ARN: see world.identify
	producer *producer.Producer

	// Guarded by streams.mu.
	users int    // requests with records that have no result yet
	used  uint64 // when the last of them came
}

func newStreams(limit int, open func(string) (*producer.Producer, error)) *streams {
	s := &streams{limit: limit, open: open}
	s.mu.byName = map[string]*stream{}
	return s
}

// use returns the stream's producer for a request, which gives it back with leave once all its
// records have their results. The error is errBusy, producer.ErrClosed, or of the stream's name.
func (s *streams) use(ctx context.Context, name string) (*stream, error) {
	st, idle, err := s.find(name)
	if idle != nil {
		// It has no records, so this does not wait for the stream.
		err = errors.Join(err, idle.producer.Close(context.WithoutCancel(ctx)))
	}
	return st, err
}

// find returns the stream, and the one whose place it was given, for the caller to close.
func (s *streams) find(name string) (st, idle *stream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, nil, fmt.Errorf("put to stream %s: %w", name, producer.ErrClosed)
	}
	s.mu.uses++
	if st = s.mu.byName[name]; st != nil {
		st.users, st.used = st.users+1, s.mu.uses
		return st, nil, nil
	}
	if len(s.mu.byName) >= s.limit {
		if idle = s.longestIdle(); idle == nil {
			return nil, nil, fmt.Errorf("put to stream %s: %w: %d streams are being put into; "+
				"raise the limit", name, errBusy, s.limit)
		}
	}
	made, err := s.open(name)
	if err != nil {
		return nil, nil, err
	}
	if idle != nil {
		delete(s.mu.byName, idle.name)
	}
	st = &stream{name: name, producer: made, users: 1, used: s.mu.uses}
	s.mu.byName[name] = st
	return st, idle, nil
}

// longestIdle returns the stream without users whose last one is the longest ago, or nil.
func (s *streams) longestIdle() *stream {
	var idle *stream
	for _, st := range s.mu.byName {
		if st.users == 0 && (idle == nil || st.used < idle.used) {
			idle = st
		}
	}
	return idle
}

// leave ends a use. It does not block, so that a producer's callback may call it.
func (s *streams) leave(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.users--
}

// all returns the streams, in the order of their names.
func (s *streams) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*stream
	for _, st := range s.mu.byName {
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b *stream) int { return strings.Compare(a.name, b.name) })
	return list
}

// close takes no more uses and closes every producer, all at the same time. It may be called
// again, and waits for the end then too.
func (s *streams) close(ctx context.Context) error {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	list := s.all()
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, st := range list {
		closing.Go(func() { errs[i] = st.producer.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
