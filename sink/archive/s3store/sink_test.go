package s3store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/s3test"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// target is an archive in a bucket.
type target struct {
	store archive.Store
	late  []func()
	rng   *rand.Rand // nil without faults
}

func (d *target) NewSink() (sink.Sink, error) {
	cfg := archive.Config{Store: d.store, Size: 500, Every: time.Hour}
	if d.rng != nil {
		cfg.Store, cfg.Size = &flaky{d.store, d}, int64(1+d.rng.IntN(3000))
	}
	return archive.New(cfg)
}

func (d *target) chain(shard sink.Shard) archive.Chain {
	return archive.Chain{
		Stream: archive.Stream{Name: shard.Stream, Created: shard.Created}, ShardID: shard.ID,
	}
}

func (d *target) Records(ctx context.Context, shard sink.Shard) ([]runnel.Record, error) {
	d.arrive()
	var records []runnel.Record
	for record, err := range archive.NewReader(d.store).Records(ctx, d.chain(shard)) {
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// Gaps implements sinktest.Gapper.
func (d *target) Gaps(ctx context.Context, shard sink.Shard) ([]sink.Gap, error) {
	var gaps []sink.Gap
	for link, err := range archive.NewReader(d.store).Links(ctx, d.chain(shard)) {
		if err != nil {
			return nil, err
		}
		if link.Gap != nil {
			gaps = append(gaps, *link.Gap)
		}
	}
	return gaps, nil
}

func (d *target) arrive() {
	for _, put := range d.late {
		put()
	}
	d.late = nil
}

var errInjected = errors.New("injected")

// flaky loses answers, and delays puts.
type flaky struct {
	archive.Store
	target *target
}

func (f *flaky) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	d := f.target
	if d.rng.IntN(4) == 0 {
		d.arrive()
	}
	data = append([]byte(nil), data...)
	switch d.rng.IntN(12) {
	case 0: // the answer is lost
		_ = f.Store.PutIfAbsent(ctx, name, data)
		return errInjected
	case 1: // the answer is lost, and another try below finds the object
		if err := f.Store.PutIfAbsent(ctx, name, data); err != nil {
			return err
		}
		return archive.ErrObjectExists
	case 2: // it comes later
		d.late = append(d.late, func() {
			_ = f.Store.PutIfAbsent(context.WithoutCancel(ctx), name, data)
		})
		return errInjected
	}
	return f.Store.PutIfAbsent(ctx, name, data)
}

// server is a real server of S3, if s3test.Env names one, or the fake one.
type server struct {
	*testing.T
	client *s3.Client
	n      atomic.Int64
}

func newServer(t *testing.T) *server {
	if os.Getenv(s3test.Env) == "" {
		fake := gofakes3.New(s3mem.New()).Server()
		return &server{T: t, client: newClient(t, "http://s3.test", direct{fake})}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretAccessKey)
	client, err := awsclient.S3(t.Context(), awsclient.S3Options{Endpoint: s3test.New(t).URL})
	if err != nil {
		t.Fatal(err)
	}
	return &server{T: t, client: client}
}

// target returns an archive below a prefix of its own.
func (s *server) target() *target {
	s.Helper()
	store, err := s3store.New(s3store.Config{
		S3: s.client, Bucket: s3test.Bucket,
		Prefix: fmt.Sprintf("%s-%d-%d", s.Name(), time.Now().UnixNano(), s.n.Add(1)),
	})
	if err != nil {
		s.Fatal(err)
	}
	return &target{store: store}
}

func TestConformance(t *testing.T) {
	s := newServer(t)
	sinktest.Run(t, func(*testing.T) sinktest.Target { return s.target() })
}

// Three writers are alive on every shard, answers are lost, and puts come late.
func TestSimulation(t *testing.T) {
	s := newServer(t)
	seeds := uint64(10 * sinktest.Soak())
	var moved, tolerated int
	for seed := range seeds {
		target := s.target()
		target.rng = rand.New(rand.NewPCG(seed, 3))
		stats, err := sinktest.Simulate(t.Context(), target, sinktest.Plan{
			Seed: seed, Records: 15,
			Tolerate: func(err error) bool { return errors.Is(err, errInjected) },
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		report, err := archive.NewReader(target.store).Verify(t.Context(), archive.VerifyOptions{})
		if err != nil || !report.OK() {
			t.Fatalf("seed %d: %v\n%+v", seed, err, report)
		}
		moved, tolerated = moved+stats.Moved, tolerated+stats.Tolerated
	}
	t.Logf("soak: %d seeds, %d commits lost to another writer, %d faults", seeds, moved, tolerated)
	if moved == 0 || tolerated == 0 {
		t.Error("the simulation has not met what it is for")
	}
}

// A store that ignores the condition does damage, which the simulation finds.
func TestSimulationControl(t *testing.T) {
	fake := gofakes3.New(s3mem.New()).Server()
	blind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		fake.ServeHTTP(w, r)
	})
	s := &server{T: t, client: newClient(t, "http://s3.test", direct{blind})}
	for seed := range uint64(50) {
		target := s.target()
		target.rng = rand.New(rand.NewPCG(seed, 3))
		_, err := sinktest.Simulate(t.Context(), target, sinktest.Plan{
			Seed: seed, Records: 15,
			Tolerate: func(err error) bool { return errors.Is(err, errInjected) },
		})
		if err != nil {
			t.Logf("found after %d runs: %v", seed, err)
			return
		}
	}
	t.Error("it has done no damage")
}

// Of eight writers of one name one wins, each time.
func TestRaces(t *testing.T) {
	s := newServer(t)
	target := s.target()
	for race := range 50 * sinktest.Soak() {
		won := make(chan error, 8)
		for n := range cap(won) {
			go func() {
				won <- target.store.PutIfAbsent(t.Context(), fmt.Sprint(race), fmt.Append(nil, n))
			}()
		}
		wins := 0
		for range cap(won) {
			switch err := <-won; {
			case err == nil:
				wins++
			case !errors.Is(err, archive.ErrObjectExists):
				t.Fatal(err)
			}
		}
		if wins != 1 {
			t.Fatalf("race %d: %d winners", race, wins)
		}
	}
}

// counted counts the calls by kind.
type counted struct {
	s3store.API
	puts, gets, lists int
}

func (c *counted) PutObject(
	ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	c.puts++
	return c.API.PutObject(ctx, in, o...)
}

func (c *counted) GetObject(
	ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	c.gets++
	return c.API.GetObject(ctx, in, o...)
}

func (c *counted) ListObjectsV2(
	ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	c.lists++
	return c.API.ListObjectsV2(ctx, in, o...)
}

// Each link costs one PUT, and nothing is read or listed between two. A worker with the lease row's
// token reads the last link and the place behind it; one without lists a page of names as well.
func TestRequests(t *testing.T) {
	api := &counted{API: newServer(t).client}
	store, err := s3store.New(s3store.Config{S3: api, Bucket: s3test.Bucket, Prefix: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.New(archive.Config{Store: store, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	shard := sink.Shard{Stream: "orders", Created: time.UnixMilli(1e12), ID: "shardId-000000000000"}
	w, err := a.Open(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	*api = counted{API: api.API}
	const links = 50
	var last sink.Committed
	for n := range links {
		if last, err = w.Write(t.Context(), record(shard.ID, n)); err != nil {
			t.Fatal(err)
		}
	}
	if api.puts != links || api.gets+api.lists > 0 {
		t.Errorf("%d links: %d puts, %d gets, %d lists", links, api.puts, api.gets, api.lists)
	}
	for _, known := range []bool{true, false} {
		*api = counted{API: api.API}
		if shard.Checkpoint, shard.Token = last.End, last.Token; !known {
			shard.Token = ""
		}
		lists := 1
		if known {
			lists = 0
		}
		w, err := a.Open(t.Context(), shard)
		if err != nil || w.Committed().End != last.End {
			t.Fatalf("%v, %v", w, err)
		}
		if api.puts > 0 || api.gets > 2 || api.lists != lists {
			t.Errorf("known %v: %d puts, %d gets, %d lists", known, api.puts, api.gets, api.lists)
		}
	}
}
