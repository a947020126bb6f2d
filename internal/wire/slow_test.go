package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

// slowly is a connection in virtual time: its client sends, or reads, so many bytes a second.
type slowly struct {
	*httptest.ResponseRecorder
	rate, left int

	mu    sync.Mutex
	until [2]time.Time  // for reads and for writes
	moved chan struct{} // a deadline has moved
}

func newSlowly(rate, length int) *slowly {
	return &slowly{
		ResponseRecorder: httptest.NewRecorder(), rate: rate, left: length,
		moved: make(chan struct{}, 100),
	}
}

func (s *slowly) deadline(of int, by time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[of] = by
	s.moved <- struct{}{}
	return nil
}

func (s *slowly) SetReadDeadline(by time.Time) error  { return s.deadline(0, by) }
func (s *slowly) SetWriteDeadline(by time.Time) error { return s.deadline(1, by) }

// wait waits for a time, and returns an error if a deadline ends it.
func (s *slowly) wait(of int, d time.Duration) error {
	done := time.After(d)
	for {
		s.mu.Lock()
		late := time.After(time.Until(s.until[of]))
		if s.until[of].IsZero() {
			late = nil
		}
		s.mu.Unlock()
		select {
		case <-done:
			return nil
		case <-late:
			return os.ErrDeadlineExceeded
		case <-s.moved:
		}
	}
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), 4<<10, s.left)
	if err := s.wait(0, time.Duration(n)*time.Second/time.Duration(s.rate)); err != nil {
		return 0, err
	}
	for i := range n {
		p[i] = ' '
	}
	s.left -= n
	return n, nil
}

func (s *slowly) Write(p []byte) (int, error) {
	if err := s.wait(1, time.Duration(len(p))*time.Second/time.Duration(s.rate)); err != nil {
		return 0, err
	}
	return s.ResponseRecorder.Write(p)
}

func put(t *testing.T, body io.Reader, length int) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.ContentLength = int64(length)
	r.Header.Set("Content-Type", json11)
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecords")
	return r
}

// A body of less than 32 KiB/s over ten seconds is refused, and one that is a little faster is not.
func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		rate, length, status int
	}{
		{31 << 10, 1 << 20, http.StatusRequestTimeout},
		{1, 100, http.StatusRequestTimeout},
		{33 << 10, MaxBody, http.StatusOK},
		{20, 100, http.StatusOK},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlowly(c.rate, c.length)
			x, err := Begin(s, put(t, s, c.length), Checks{})
			if err == nil {
				x.Answer(nil)
				x.Close()
			}
			if s.Code != c.status {
				t.Errorf("%+v: %d %s %v", c, s.Code, s.Body, err)
			}
			if c.status != http.StatusOK && (s.Header().Get("Connection") != "close" ||
				!strings.Contains(s.Body.String(), `"RequestTimeoutException"`)) {
				t.Errorf("%+v: %v %s", c, s.Header(), s.Body)
			}
		})
	}
}

// A long answer ends if its client reads less than 32 KiB/s over ten seconds, also if the client
// took half of it at once.
func TestSlowReaders(t *testing.T) {
	for rate, whole := range map[int]bool{31 << 10: false, 33 << 10: true} {
		for name, writer := range map[string]func(s *slowly) http.ResponseWriter{
			"in pieces":    func(s *slowly) http.ResponseWriter { return s },
			"watched":      func(s *slowly) http.ResponseWriter { return watched{slowly: s} },
			"late to slow": func(s *slowly) http.ResponseWriter { return watched{slowly: s, first: 1 << 19} },
		} {
			synctest.Test(t, func(t *testing.T) {
				s, began := newSlowly(rate, 0), time.Now()
				x := &Exchange{w: writer(s)}
				x.Answer(make([]byte, 2<<20))
				if got := s.Body.Len(); (got == 2<<20) != whole {
					t.Errorf("%s, %d bytes a second: %d bytes were sent", name, rate, got)
				}
				if took := time.Since(began); !whole && took > 31*time.Second {
					t.Errorf("%s: it took %s", name, took)
				}
			})
		}
	}
}

// A watched answer that is slow is cut off for others at the next look, and one that moves is not.
func TestCutWatchedAnswer(t *testing.T) {
	for rate, most := range map[int]int{40 << 10: 300 << 10, 100 << 10: 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(1<<20, 0)
			s := newSlowly(rate, 0)
			x := &Exchange{w: watched{slowly: s}}
			var share, last budget.Share
			memory.Open(&share, cutter{})
			if err := share.Grow(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			x.Call.Sending = &share
			ended := make(chan error)
			go func() {
				time.Sleep(5 * time.Second)
				memory.Open(&last, cutter{})
				ended <- last.Grow(t.Context(), 1<<20)
			}()
			x.Answer(make([]byte, 1<<20))
			got, whole := s.Body.Len(), most == 1<<20
			if share.IsCut() == whole || got > most || whole && got < most {
				t.Errorf("%d bytes a second: cut %v, %d bytes were sent", rate, share.IsCut(), got)
			}
			share.Release()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A short answer that holds memory is cut off for others, too, if it moves slowly. It has its time
// if there are no others.
func TestCutShortAnswer(t *testing.T) {
	const length = 300 << 10
	for _, c := range []struct {
		rate          int
		others, whole bool
	}{{10 << 10, true, false}, {100 << 10, true, true}, {10 << 10, false, true}, {4 << 10, false, false}} {
		for name, writer := range map[string]func(s *slowly) http.ResponseWriter{
			"in pieces": func(s *slowly) http.ResponseWriter { return s },
			"watched":   func(s *slowly) http.ResponseWriter { return watched{slowly: s} },
		} {
			synctest.Test(t, func(t *testing.T) {
				memory := budget.New(length, 0)
				s := newSlowly(c.rate, 0)
				_ = s.SetWriteDeadline(time.Now().Add(time.Minute)) // the server's
				var share, last budget.Share
				memory.Open(&share, writeCutter{s})
				if err := share.Grow(t.Context(), length); err != nil {
					t.Fatal(err)
				}
				x := &Exchange{w: writer(s)}
				x.Call.Sending = &share
				ended := make(chan error, 1)
				if c.others {
					memory.Open(&last, cutter{})
					go func() { ended <- last.Grow(t.Context(), length) }()
				} else {
					ended <- nil
				}
				began := time.Now()
				x.Answer(make([]byte, length))
				took := time.Since(began)
				if got := s.Body.Len(); (got == length) != c.whole || share.IsCut() == c.whole && c.others {
					t.Errorf("%s, %+v: %d bytes, cut: %v", name, c, got, share.IsCut())
				}
				if c.others && took > 5*time.Second || took > time.Minute+time.Second {
					t.Errorf("%s, %+v: it took %s", name, c, took)
				}
				share.Release()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// writeCutter cuts off the writes of a slowly.
type writeCutter struct{ s *slowly }

func (c writeCutter) Cut() { _ = c.s.deadline(1, time.Unix(1, 0)) }

// A client that takes 700 KiB every 16 s is not cut off, although it takes nothing in some ten
// seconds.
func TestReadersInBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowly(0, 0)
		x := &Exchange{w: watched{s, 700 << 10, 16 * time.Second}}
		x.Answer(make([]byte, 8<<20))
		if got := s.Body.Len(); got != 8<<20 {
			t.Errorf("%d bytes were sent", got)
		}
	})
}

// watched is a slowly that reports its progress. The client takes the first bytes at once. If every
// is not 0, it takes as many again after each such time, and none between.
type watched struct {
	*slowly
	first int
	every time.Duration
}

func (s watched) WriteWatched(
	body []byte, watch func(gone int, waited time.Duration) (goOn bool),
) error {
	const look = time.Second / 4
	gone := s.first
	for waited := time.Duration(0); gone < len(body); waited += look {
		if !watch(gone, waited) {
			_, _ = s.ResponseRecorder.Write(body[:gone])
			return os.ErrDeadlineExceeded
		}
		time.Sleep(look)
		switch {
		case s.every == 0:
			gone += s.rate / 4
		case (waited+look)%s.every == 0:
			gone += s.first
		}
	}
	_, err := s.ResponseRecorder.Write(body)
	return err
}

// A body that is cut off for others is refused like a slow one, whether it waits for its client or
// for memory.
func TestCutBody(t *testing.T) {
	for name, settled := range map[string]int{"reads": 0, "waits": 800 << 10} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(1<<20, 0)
			s := newSlowly(20<<10, 1<<20)
			var first, share, last budget.Share
			memory.Open(&first, cutter{})
			if err := first.Grow(t.Context(), settled); err != nil {
				t.Fatal(err)
			}
			first.Settle()
			memory.Open(&share, cutter{s})
			ended := make(chan error)
			go func() {
				time.Sleep(5 * time.Second)
				memory.Open(&last, cutter{})
				ended <- last.Grow(t.Context(), 1<<20-settled)
			}()
			_, err := Begin(s, put(t, s, 1<<20), Checks{Memory: &share})
			share.Release()
			if s.Code != http.StatusRequestTimeout || !errors.Is(err, ErrAnswered) || !share.IsCut() {
				t.Errorf("%s: %d %s %v", name, s.Code, s.Body, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

type cutter struct{ s *slowly }

func (c cutter) Cut() {
	if c.s != nil {
		_ = c.s.deadline(0, time.Unix(1, 0))
	}
}

// A long body is refused by its head, before it has come: without a known key, of an unknown
// operation, or too long for its service.
func TestLongBodyIsRefusedByItsHead(t *testing.T) {
	keys := keysAt(t, noon)
	for _, c := range []struct {
		name   string
		auth   *Credentials
		change func(r *http.Request)
		status int
		code   string
	}{
		{"no signature", keys, func(*http.Request) {}, 400, "MissingAuthenticationTokenException"},
		{"an unknown key", keys, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", noon.Format(basicFormat))
			r.Header.Set("Authorization", algorithmV4+" Credential=AKIDUNKNOWN/"+
				noon.Format("20060102")+"/us-east-1/kinesis/aws4_request, "+
				"SignedHeaders=host;x-amz-date;x-amz-target, Signature=00")
		}, 400, "UnrecognizedClientException"},
		{"an unknown operation", nil, func(r *http.Request) {
			r.Header.Set("X-Amz-Target", "Kinesis_20131202")
		}, 400, "UnknownOperationException"},
		{"a form", nil, func(r *http.Request) {
			r.Header.Del("X-Amz-Target")
			r.Header.Set("Content-Type", formType)
		}, 413, ""},
		{"metrics", nil, func(r *http.Request) {
			r.Header.Set("X-Amz-Target", granite+".PutMetricData")
			r.Header.Set("Content-Type", json10)
		}, 413, ""},
	} {
		body := &countingReader{}
		r := put(t, body, 10<<20)
		c.change(r)
		w := httptest.NewRecorder()
		_, err := Begin(w, r, Checks{Keys: c.auth})
		if w.Code != c.status || !errors.Is(err, ErrAnswered) || !strings.Contains(w.Body.String(), c.code) {
			t.Errorf("%s: %d %s %v", c.name, w.Code, w.Body, err)
		}
		if w.Header().Get("Connection") != "close" || body.n > budget.Free {
			t.Errorf("%s: %v, %d bytes were read", c.name, w.Header(), body.n)
		}
	}
}

type countingReader struct{ n int }

func (c *countingReader) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// A body or an answer that moves 100 KiB a second is never the one to be cut off for others.
func TestSteadyIsNotCut(t *testing.T) {
	const rate, length = 100 << 10, 2 << 20
	for name, move := range map[string]func(t *testing.T, s *slowly, share *budget.Share){
		"body": func(t *testing.T, s *slowly, share *budget.Share) {
			x, err := Begin(s, put(t, s, length), Checks{Memory: share})
			if err != nil {
				t.Fatalf("%d %v", s.Code, err)
			}
			x.Close()
		},
		"answer": func(t *testing.T, s *slowly, share *budget.Share) {
			if err := share.Grow(t.Context(), length); err != nil {
				t.Fatal(err)
			}
			x := &Exchange{w: s}
			x.Call.Sending = share
			x.Answer(make([]byte, length))
			if got := s.Body.Len(); got != length {
				t.Errorf("%d bytes were sent", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := budget.New(length, 0)
				s := newSlowly(rate, length)
				s.moved = make(chan struct{}, 1000)
				var share, other budget.Share
				memory.Open(&share, cutter{s})
				memory.Open(&other, cutter{})
				waits := make(chan error, 1)
				go func() {
					time.Sleep(time.Second)
					waits <- other.Grow(t.Context(), length)
				}()
				move(t, s, &share)
				if share.IsCut() {
					t.Error("it was cut off")
				}
				share.Release()
				if err := <-waits; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
