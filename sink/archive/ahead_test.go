package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// slow is a store with a latency, which counts the objects that are open.
type slow struct {
	Store
	mu         sync.Mutex
	open, most int
}

func (s *slow) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	<-time.After(100 * time.Millisecond)
	body, err := s.Store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
	return slowBody{body, s}, nil
}

type slowBody struct {
	io.ReadCloser
	of *slow
}

func (b slowBody) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.open--
	return b.ReadCloser.Close()
}

// Objects are read ahead, in bounds, whole, and all are closed, also if some are passed over, are
// not there, or if the reading ends early.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: newDirStoreOn(vfs.NewMem(), "to")}
		name := func(n int) string { return fmt.Sprintf("f/%03d", n) }
		const objects = 160
		for n := range objects {
			size := n
			if n%40 == 3 {
				size = aheadBytes + n // it does not fit into the part that is read ahead
			}
			if err := store.PutIfAbsent(t.Context(), name(n), make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		a := newAhead(t.Context(), store, wholeRoom)
		for n := range objects + 20 { // the last ones are not there
			a.expect(name(n))
		}
		began := time.Now()
		for n := range objects {
			if n%7 == 5 {
				continue // passed over
			}
			body, err := a.Get(t.Context(), name(n))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(body)
			want := n
			if n%40 == 3 {
				want = aheadBytes + n
			}
			if err != nil || len(data) != want {
				t.Errorf("object %d: %d bytes, %v", n, len(data), err)
			}
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		}
		if took, want := time.Since(began), 100*time.Millisecond*objects/parallelReads; took > want*3/2 {
			t.Errorf("it took %s, about %s is possible", took, want)
		}
		if _, err := a.Get(t.Context(), name(objects+1)); !errors.Is(err, ErrObjectNotFound) {
			t.Errorf("an object that is not there: %v", err)
		}
		if _, err := a.Get(t.Context(), name(1)); err != nil { // not expected
			t.Error(err)
		} else {
			store.open--
		}
		a.close()
		// One is read, and those that were passed over are closed when they are there.
		if store.open != 0 || store.most > parallelReads+4 {
			t.Errorf("%d objects are open, %d at a time", store.open, store.most)
		}
	})
}
