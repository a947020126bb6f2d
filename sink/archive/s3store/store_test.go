package s3store_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

// bucket is a fake S3 with a bucket, and a handler in front of it that a test may set.
type bucket struct {
	*testing.T
	client *s3.Client
	front  atomic.Pointer[func(next http.Handler, w http.ResponseWriter, r *http.Request)]
	calls  atomic.Int64
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{T: t}
	fake := gofakes3.New(s3mem.New()).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.calls.Add(1)
		if front := b.front.Load(); front != nil {
			(*front)(fake, w, r)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.client = newClient(t, server.URL, nil)
	return b
}

// newClient returns a client of a new bucket, events. do takes the calls without a network.
func newClient(t *testing.T, url string, do s3.HTTPClient) *s3.Client {
	client := s3.New(s3.Options{
		BaseEndpoint: &url, Region: "us-east-1", UsePathStyle: true, HTTPClient: do,
		Credentials:                credentials.NewStaticCredentialsProvider("a", "b", ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		Retryer:                    aws.NopRetryer{},
	})
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("events")})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// direct calls a handler without a network, for tests with many calls.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.RequestURI = r.URL.RequestURI()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// meet sets the handler in front; nil for none.
func (b *bucket) meet(front func(next http.Handler, w http.ResponseWriter, r *http.Request)) {
	if front == nil {
		b.front.Store(nil)
		return
	}
	b.front.Store(&front)
}

func (b *bucket) store(prefix string) *s3store.Store {
	b.Helper()
	s, err := s3store.New(s3store.Config{S3: b.client, Bucket: "events", Prefix: prefix})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func read(ctx context.Context, s archive.Store, name string) (string, error) {
	body, err := s.Get(ctx, name)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	return string(text), err
}

func TestStore(t *testing.T) {
	for _, prefix := range []string{"", "a", "a/b"} {
		b := newBucket(t)
		s, ctx := b.store(prefix), t.Context()
		if names, more, err := s.After(ctx, "s/x", ""); len(names) > 0 || more || err != nil {
			t.Errorf("after the start of nothing: %q, %v, %v", names, more, err)
		}
		for _, name := range []string{"s/x/2", "s/x/10", "s/x/.hidden", "s/y/1", "s/0"} {
			if err := s.PutIfAbsent(ctx, name, []byte("of "+name)); err != nil {
				t.Fatal(err)
			}
			if err := s.PutIfAbsent(ctx, name, []byte("another")); !errors.Is(err, archive.ErrObjectExists) {
				t.Errorf("%s was created twice: %v", name, err)
			}
			if text, err := read(ctx, s, name); text != "of "+name || err != nil {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		for _, text := range []string{"new", "newer"} {
			err := s.Put(ctx, "t/1", []byte(text))
			if got, readErr := read(ctx, s, "t/1"); got != text || err != nil || readErr != nil {
				t.Errorf("put %q: %q, %v, %v", text, got, err, readErr)
			}
		}
		if _, err := read(ctx, s, "s/x/3"); !errors.Is(err, archive.ErrObjectNotFound) {
			t.Errorf("an object that is not there: %v", err)
		}
		got, err := s.List(ctx, "s")
		if err != nil || !slices.Equal(got.Folders, []string{"x", "y"}) ||
			!slices.Equal(got.Objects, []string{"0"}) {
			t.Errorf("listed %+v, %v", got, err)
		}
		for after, want := range map[string]string{
			"": "10 2", "1": "10 2", "10": "2", "11": "2", "2": "", "zz": "",
		} {
			names, more, err := s.After(ctx, "s/x", after)
			if got := strings.Join(names, " "); got != want || more || err != nil {
				t.Errorf("after %q: %q, %v, %v, want %q", after, got, more, err, want)
			}
		}
		s.SetPage(1)
		if names, more, err := s.After(ctx, "s/x", "1"); len(names) != 1 || !more || err != nil {
			t.Errorf("one at a time: %q, %v, %v", names, more, err)
		}
		if err := s.Probe(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Probe(ctx); err != nil {
			t.Errorf("the second probe: %v", err)
		}
		if got, err := s.List(ctx, ""); err != nil || len(got.Objects) > 0 || len(got.Folders) != 2 {
			t.Errorf("after a probe: %+v, %v", got, err)
		}
	}
}

// A store that ignores the condition is refused before the first record.
func TestProbeSeesAnIgnoredCondition(t *testing.T) {
	b := newBucket(t)
	b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		next.ServeHTTP(w, r)
	})
	if err := b.store("a").Probe(t.Context()); !errors.Is(err, s3store.ErrConditionIgnored) {
		t.Error(err)
	}
}

// A store that honours the condition only while no other create is under way is refused, too.
func TestProbeSeesALostRace(t *testing.T) {
	b := newBucket(t)
	b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".runnel-race") {
			r.Header.Del("If-None-Match")
		}
		next.ServeHTTP(w, r)
	})
	if err := b.store("a").Probe(t.Context()); !errors.Is(err, s3store.ErrConditionIgnored) {
		t.Error(err)
	}
}

// The examination passes a sound store, leaves nothing behind, and sees a store that ignores the
// condition, loses objects, or hides them from listings.
func TestExamine(t *testing.T) {
	b := newBucket(t)
	s := b.store("a")
	e, err := s.Examine(t.Context(), 10)
	if err != nil || !e.OK() || e.One != 10 || e.Left != 0 {
		t.Errorf("a sound store: %+v, %v", e, err)
	}
	if l, err := s.List(t.Context(), ""); err != nil || len(l.Folders) > 0 {
		t.Errorf("left behind: %+v, %v", l, err)
	}
	for name, c := range map[string]struct {
		front func(next http.Handler, w http.ResponseWriter, r *http.Request)
		sees  func(s3store.Examination) int
	}{
		"it ignores the condition": {
			func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				r.Header.Del("If-None-Match")
				next.ServeHTTP(w, r)
			},
			func(e s3store.Examination) int { return e.Several },
		},
		"it refuses every create": {
			func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					answer(w, http.StatusPreconditionFailed, "PreconditionFailed")
					return
				}
				next.ServeHTTP(w, r)
			},
			func(e s3store.Examination) int { return min(e.None, e.Unread) },
		},
		"it hides objects": {
			func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("list-type") {
					q := r.URL.Query()
					q.Set("prefix", "other/")
					r.URL.RawQuery = q.Encode()
				}
				next.ServeHTTP(w, r)
			},
			func(e s3store.Examination) int { return e.Unlisted },
		},
		"it may not delete": {
			func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					answer(w, http.StatusForbidden, "AccessDenied")
					return
				}
				next.ServeHTTP(w, r)
			},
			func(e s3store.Examination) int { return e.Left },
		},
	} {
		b.meet(c.front)
		e, err := s.Examine(t.Context(), 5)
		if err != nil || c.sees(e) != 5 || e.OK() != (e.Left == 5 && e.One == 5) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		b.meet(nil)
	}
}
