package s3store_test

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

func answer(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>m</Message></Error>`,
		code)
}

// Answers that another try does not change end the work, and say what to do; the others are an
// outage.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
		text   string
	}{
		{403, "AccessDenied", archive.ErrStoreRefused, "s3:ListBucket"},
		{404, "NoSuchBucket", archive.ErrStoreRefused, "no such bucket"},
		{301, "PermanentRedirect", archive.ErrStoreRefused, "region eu-west-3"},
		{400, "AuthorizationHeaderMalformed", archive.ErrStoreRefused, "region eu-west-3"},
		{400, "InvalidArgument", archive.ErrStoreRefused, ""},
		{409, "InvalidBucketState", archive.ErrStoreRefused, ""},
		{501, "NotImplemented", archive.ErrStoreRefused, ""},
		{307, "TemporaryRedirect", archive.ErrStoreUnavailable, ""},
		{404, "NotFound", archive.ErrStoreUnavailable, ""},
		{400, "IncompleteBody", archive.ErrStoreUnavailable, ""},
		{400, "ExpiredToken", archive.ErrStoreUnavailable, ""},
		{429, "TooManyRequests", archive.ErrStoreUnavailable, ""},
		{500, "InternalError", archive.ErrStoreUnavailable, ""},
		{503, "SlowDown", archive.ErrStoreUnavailable, ""},
	} {
		b := newBucket(t)
		b.meet(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-3")
			answer(w, c.status, c.code)
		})
		s := b.store("a")
		_, got := s.Get(t.Context(), "x")
		_, listed := s.List(t.Context(), "x")
		_, _, named := s.After(t.Context(), "x", "y")
		put := s.PutIfAbsent(t.Context(), "x", nil)
		for _, err := range []error{got, listed, named, put} {
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%d %s: %v, want %v", c.status, c.code, err, c.want)
			}
		}
	}
}

// A body that breaks off, or that brings nothing more, is read on from there.
func TestReadGoesOn(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	for _, c := range []struct {
		hang   bool
		cut    int
		breaks int64
	}{{false, 70_000, 3}, {true, 70_000, 3}, {false, 300_000, 1}} {
		hang := c.hang
		b := newBucket(t)
		s, err := s3store.New(s3store.Config{
			S3: b.client, Bucket: "events", CallTimeout: 300 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutIfAbsent(t.Context(), "x", []byte(text)); err != nil {
			t.Fatal(err)
		}
		var broken atomic.Int64
		b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if broken.Add(1) > c.breaks {
				next.ServeHTTP(w, r)
				return
			}
			whole := httptest.NewRecorder()
			next.ServeHTTP(whole, r)
			for name, values := range whole.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length") // so that the end is not known
			w.WriteHeader(whole.Code)
			_, _ = w.Write(whole.Body.Bytes()[:c.cut])
			w.(http.Flusher).Flush()
			if hang {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		})
		if got, err := read(t.Context(), s, "x"); got != text || err != nil {
			t.Errorf("%+v: %d bytes, %v", c, len(got), err)
		}
		if n := broken.Load(); n != c.breaks+1 {
			t.Errorf("%+v: %d calls", c, n)
		}
	}
}

// A create that S3 answers with 409, since another one is under way, is sent again.
func TestConflictIsTriedAgain(t *testing.T) {
	b := newBucket(t)
	var calls atomic.Int64
	b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 2 {
			answer(w, http.StatusConflict, "ConditionalRequestConflict")
			return
		}
		next.ServeHTTP(w, r)
	})
	if err := b.store("").PutIfAbsent(t.Context(), "x", []byte("1")); err != nil || calls.Load() != 3 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	b.meet(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusConflict, "ConditionalRequestConflict")
	})
	err := b.store("").PutIfAbsent(t.Context(), "y", []byte("1"))
	if !errors.Is(err, archive.ErrStoreUnavailable) {
		t.Errorf("conflicts without an end: %v", err)
	}
}

// A server that answers a range with the whole object is understood, and one that answers with
// another range is refused. Bytes that are not those of the checksum are an outage.
func TestResumeChecksTheAnswer(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	for name, c := range map[string]struct {
		rest func(next http.Handler, w http.ResponseWriter, r *http.Request)
		ok   bool
	}{
		"whole": {func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			next.ServeHTTP(w, r)
		}, true},
		"another": {func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=10-")
			next.ServeHTTP(w, r)
		}, false},
	} {
		b := newBucket(t)
		s := b.store("")
		if err := s.PutIfAbsent(t.Context(), "x", []byte(text)); err != nil {
			t.Fatal(err)
		}
		b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				c.rest(next, w, r)
				return
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = w.Write([]byte(text[:70_000]))
			panic(http.ErrAbortHandler)
		})
		got, err := read(t.Context(), s, "x")
		if c.ok && (err != nil || got != text) || !c.ok && !errors.Is(err, archive.ErrStoreUnavailable) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	b := newBucket(t)
	s, err := s3store.New(s3store.Config{Bucket: "events", S3: s3.New(b.client.Options(), func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	})})
	if err != nil {
		t.Fatal(err)
	}
	b.meet(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==")
		_, _ = w.Write([]byte("changed"))
	})
	calls := b.calls.Load()
	if _, err := read(t.Context(), s, "x"); !errors.Is(err, archive.ErrStoreUnavailable) ||
		b.calls.Load() != calls+1 {
		t.Errorf("a wrong checksum: %v after %d calls", err, b.calls.Load()-calls)
	}
}

// record returns a batch of one record.
func record(id runnel.ShardID, n int) sink.Batch {
	at := runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))}
	return sink.Batch{Through: at, Records: []runnel.Record{{
		PartitionKey: "k", ShardID: id, Data: []byte("1"), Position: at,
		ArrivalTime: time.UnixMilli(1e12),
	}}}
}

// A writer waits out an outage with its records, and sends the same link again. Answers are lost,
// so one link was there already. A refusal ends the wait.
func TestWriterWaitsOutAnOutage(t *testing.T) {
	b := newBucket(t)
	var outages atomic.Int64
	a, err := archive.New(archive.Config{
		Store: b.store("a"), Size: 1, OnOutage: func(archive.Outage) { outages.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	shard := sink.Shard{Stream: "orders", Created: time.UnixMilli(1e12), ID: "shardId-000000000000"}
	w, err := a.Open(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	var puts atomic.Int64
	b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && puts.Add(1) == 1: // the answer is lost
			next.ServeHTTP(httptest.NewRecorder(), r)
			answer(w, 500, "InternalError")
		case r.Method == http.MethodPut && puts.Load() == 2:
			answer(w, 503, "SlowDown")
		case r.Method == http.MethodGet && puts.Load() == 3 && outages.Load() == 2:
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, 500, "InternalError")
		default:
			next.ServeHTTP(w, r)
		}
	})
	c, err := w.Write(t.Context(), record(shard.ID, 1))
	if err != nil || c.End != record(shard.ID, 1).Through || outages.Load() != 3 {
		t.Fatalf("%v, %v, %d outages", c, err, outages.Load())
	}
	b.meet(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		answer(w, 403, "AccessDenied")
	})
	if _, err := w.Write(t.Context(), record(shard.ID, 2)); !errors.Is(err, archive.ErrStoreRefused) {
		t.Errorf("a refusal: %v", err)
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket": "s3://bucket", "s3://bucket/": "s3://bucket",
		"s3://bucket/a/b/": "s3://bucket/a/b", "S3://my.bucket-1/ä b": "s3://my.bucket-1/ä b",
		"s3://": "", "s3:///a": "", "s3://bucket/a//b": "", "s3://bucket/../a": "",
		"s3://bucket?x=1": "", "s3://u@bucket/a": "", "s3://bucket:80/a": "", "s3://bucket:/a": "",
		"folder": "", "s3:/bucket/a": "", "s3:bucket": "", "s3://b--x-s3/a": "", "s3://bucket/\x00": "",
		"s3://Bucket/a": "", "s3://bu/a": "", "s3://b_u*c/a": "", "s3://[::1]/a": "",
		"s3://bucket/a?": "", "s3://bucket/a#": "", "s3://bucket/a%00": "", "s3://bucket/\xff": "",
	} {
		place, err := s3store.ParseURL(text)
		if got := place.String(); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, cfg := range []s3store.Config{
		{},
		{Bucket: "b"},
		{S3: newBucket(t).client, Bucket: "b", Prefix: "/a"},
		{S3: newBucket(t).client, Bucket: "b", Encryption: "rot13"},
		{S3: newBucket(t).client, Bucket: "b", KMSKey: "k"},
		{
			S3: newBucket(t).client, Bucket: "b", KMSKey: "k",
			Encryption: types.ServerSideEncryptionAes256,
		},
		{S3: newBucket(t).client, Bucket: "b", CallTimeout: -1},
	} {
		if _, err := s3store.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// An outage amid an object is no damage: the verdict is not given.
func TestVerifyDuringAnOutage(t *testing.T) {
	b := newBucket(t)
	s, err := s3store.New(s3store.Config{
		S3: b.client, Bucket: "events", CallTimeout: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.New(archive.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	shard := sink.Shard{Stream: "orders", Created: time.UnixMilli(1e12), ID: "shardId-000000000000"}
	w, err := a.Open(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	batch := record(shard.ID, 1)
	batch.Records[0].Data = make([]byte, 300_000)
	_, _ = crand.Read(batch.Records[0].Data)
	if _, err := w.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 30, 100_000} { // before the link, in it, and amid the records
		b.meet(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, ".gz") {
				next.ServeHTTP(w, r)
				return
			}
			whole := httptest.NewRecorder()
			next.ServeHTTP(whole, r)
			if r.Header.Get("Range") != "" || cut == 0 {
				answer(w, 503, "SlowDown")
				return
			}
			w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
			_, _ = w.Write(whole.Body.Bytes()[:cut])
			panic(http.ErrAbortHandler)
		})
		report, err := archive.NewReader(s).Verify(t.Context(), archive.VerifyOptions{})
		if !errors.Is(err, archive.ErrStoreUnavailable) {
			t.Errorf("cut at %d: %v, %+v", cut, err, report)
		}
	}
}
