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

// errBusy: the proxy has Config.MaxStreams producers, and each of them has records to deliver.
var errBusy = errors.New("too many streams at a time")

// streams has a producer for each stream in use, made at the first put. It is safe for concurrent
// use.
type streams struct {
	limit int // of producers
	open  func(stream string) (*producer.Producer, error)

	// Under mu no function that blocks is called: open sends nothing.
	mu struct {
		sync.Mutex
		byName map[string]*stream
		uses   uint64 // a clock for stream.used
		closed bool
	}
}

// stream is a stream's producer.
type stream struct {
	name     string // or ARN: see world.identify
	producer *producer.Producer

	// Guarded by streams.mu.
	users int    // requests with records that have no result yet
	used  uint64 // streams.uses at the last request
}

func newStreams(limit int, open func(string) (*producer.Producer, error)) *streams {
	s := &streams{limit: limit, open: open}
	s.mu.byName = map[string]*stream{}
	return s
}

// use returns the stream's producer for a request. The caller calls leave once all records of the
// request have their results. The error is errBusy, producer.ErrClosed, or about the stream's name.
func (s *streams) use(ctx context.Context, name string) (*stream, error) {
	st, idle, err := s.find(name)
	if idle != nil {
		// The idle producer has no records, so its Close does not wait for the stream.
		err = errors.Join(err, idle.producer.Close(context.WithoutCancel(ctx)))
	}
	return st, err
}

// find returns the stream. A new stream may replace an idle one, which the caller must close.
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
			return nil, nil, fmt.Errorf("put to stream %s: %w: %d streams have records to "+
				"deliver; raise the limit", name, errBusy, s.limit)
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

// longestIdle returns, of the streams without users, the one with the oldest last request, or nil.
func (s *streams) longestIdle() *stream {
	var idle *stream
	for _, st := range s.mu.byName {
		if st.users == 0 && (idle == nil || st.used < idle.used) {
			idle = st
		}
	}
	return idle
}

// leave ends a use. It does not block, so a producer's callback may call it.
func (s *streams) leave(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.users--
}

// all returns the streams, sorted by name.
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

// close refuses further uses and closes all producers at the same time. A second call also waits
// until they are closed.
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
