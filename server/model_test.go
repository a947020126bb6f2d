package server_test

import (
	"context"
	"errors"
	"flag"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/runneltest"
)

// soak multiplies the size of the random suites: RUNNEL_SOAK, 1 if it is not set.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// size sets one of rapid's sizes for a test, unless the command line does.
func size(t *testing.T, name string, value int) {
	t.Helper()
	set := flag.Lookup(name)
	was := set.Value.String()
	if was != set.DefValue {
		return
	}
	if err := set.Value.Set(strconv.Itoa(value)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Value.Set(was) })
}

// TestModel does random operations to a server, with the SDK, in virtual time, and to the model;
// the server's answers must be the model's. The server is killed now and then, on a disk that loses
// all unsynced data. rapid prints the seed of a failure and the shortest way to it.
func TestModel(t *testing.T) {
	size(t, "rapid.checks", 40*soak())
	size(t, "rapid.steps", 80)
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, runModel) })
}

// TestModelSeeds runs the random operations again that once failed. Each seed found a fault of the
// server or of the model.
func TestModelSeeds(t *testing.T) {
	for _, seed := range []string{
		"9214071481246607903", // a filter by the time of a split that a crash delayed
	} {
		t.Run(seed, func(t *testing.T) {
			for name, value := range map[string]string{
				"rapid.seed": seed, "rapid.checks": "1", "rapid.steps": "80",
			} {
				set := flag.Lookup(name)
				was := set.Value.String()
				if err := set.Value.Set(value); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = set.Value.Set(was) })
			}
			rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, runModel) })
		})
	}
}

// machine is a server beside its model.
type machine struct {
	*rapid.T
	ctx     context.Context
	server  *runneltest.Server
	client  *kinesis.Client
	streams map[string]*modelStream
	cursors []cursor
	now     time.Time // of the action
	serial  int       // of records
}

// delay is how long CREATING, UPDATING and DELETING last.
const delay = 50 * time.Millisecond

func runModel(t *rapid.T) {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.InMemory(), runneltest.WithStreamDelay(delay),
		runneltest.WithCrashes(rapid.Uint64().Draw(t, "crashes")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	m := &machine{
		T: t, ctx: ctx, server: server, streams: map[string]*modelStream{}, now: time.Now(),
		client: kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			o.Retryer = aws.NopRetryer{}
		}),
	}
	m.pass(time.Millisecond)
	m.make("alpha", rapid.IntRange(1, 4).Draw(t, "shards"))
	m.make("beta", rapid.IntRange(1, 4).Draw(t, "shards"))
	m.pass(delay)
	actions := map[string]func(){
		"create": m.create, "delete": m.remove, "put": m.put, "put more": m.putMany,
		"put many": m.putMany, "expire": m.expire, "split": m.split, "merge": m.merge, "scale": m.scale,
		"iterator": m.iterator, "iterator more": m.iterator, "read": m.read, "read more": m.read,
		"list shards": m.listShards, "describe": m.describe, "retain": m.retain, "tag": m.tag,
		"wait": m.wait, "crash": m.mayCrash, "read all": m.readAll,
	}
	table := map[string]func(*rapid.T){}
	for name, action := range actions {
		table[name] = func(t *rapid.T) {
			m.T = t
			m.pass(rapid.SampledFrom([]time.Duration{
				2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, delay,
			}).Draw(t, "later"))
			action()
		}
	}
	t.Repeat(table)
	m.T = t
	m.pass(time.Second)
	m.crash()
	m.readAll()
	m.describe()
}

// pass lets time pass, for the model as for the server. At the end of an UPDATING it stops and
// lets the server change the stream's shards, before anything else happens.
func (m *machine) pass(d time.Duration) {
	end := time.Now().Add(d)
	for st := m.pending(end); st != nil; st = m.pending(end) {
		late := time.Now().After(st.updating)
		time.Sleep(time.Until(st.updating))
		synctest.Wait()
		m.now = st.updating
		reshard := st.pending
		st.pending = nil
		reshard()
		if late {
			m.changedLate(st)
		}
	}
	time.Sleep(time.Until(end))
	m.now = time.Now()
	for name, st := range m.streams {
		st.pass(m.now)
		if st.status(m.now) == "" {
			delete(m.streams, name)
		}
	}
}

// pending returns the stream with the next reshard, up to a time.
func (m *machine) pending(end time.Time) (next *modelStream) {
	for _, st := range m.streams {
		if st.pending != nil && !st.updating.After(end) &&
			(next == nil || st.updating.Before(next.updating)) {
			next = st
		}
	}
	return next
}

func (m *machine) wait() {
	m.pass(rapid.SampledFrom([]time.Duration{
		time.Second, time.Minute, 5*time.Minute + time.Second, 7 * time.Hour,
	}).Draw(m.T, "wait"))
}

// expire waits until shortly before or after something expires, and checks the rest.
func (m *machine) expire() {
	st, there := m.some()
	if !there || !m.seldom() {
		return
	}
	var at []time.Time
	for _, sh := range st.shards {
		if sh.kept < len(sh.records) {
			at = append(at, sh.records[sh.kept].arrival)
		}
		if !sh.closed.IsZero() && !sh.gone {
			at = append(at, sh.closed)
		}
	}
	if len(at) == 0 {
		return
	}
	expiry := rapid.SampledFrom(at).Draw(m.T, "what").Add(st.retention)
	expiry = expiry.Add(rapid.SampledFrom([]time.Duration{
		-time.Minute, -time.Millisecond, time.Millisecond, 2 * time.Minute, // swept by then
	}).Draw(m.T, "off"))
	m.pass(min(max(expiry.Sub(m.now), 0), 100*time.Hour))
	if rapid.Bool().Draw(m.T, "change") {
		m.retain()
	}
	m.listShards()
	m.readAll()
}

func (m *machine) mayCrash() {
	if m.seldom() { // it takes longer than everything else
		m.crash()
	}
}

// crash cuts the power and starts the server again.
func (m *machine) crash() {
	if err := m.server.Restart(m.ctx); err != nil {
		m.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the file's slack puts the server's clock a little ahead
	synctest.Wait()                   // until the client knows that its connections are cut
	m.pass(0)
}

// apiCode is the error's code, "" if there is none.
func apiCode(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	default:
		return "no answer: " + err.Error()
	}
}

// The codes that the model knows.
const (
	notFound = "ResourceNotFoundException"
	inUse    = "ResourceInUseException"
	invalid  = "InvalidArgumentException"
	expired  = "ExpiredIteratorException"
)

// expect fails unless the answer's code is one of those; "" is success. It reports success.
func (m *machine) expect(what string, err error, codes ...string) (ok bool) {
	m.Helper()
	m.Logf("%s at %v: %s", what, m.now.UnixMilli(), apiCode(err))
	if !slices.Contains(codes, apiCode(err)) {
		m.Fatalf("%s: %v; want one of %q", what, err, codes)
	}
	return err == nil
}

// anyName draws the name of a stream, which may not exist.
func (m *machine) anyName() string {
	return rapid.SampledFrom([]string{"alpha", "beta"}).Draw(m.T, "stream")
}

// some draws a stream that can be used. there is false for a stream that has not been created, or
// is being deleted. The action then does nothing; to skip it would spend rapid's patience.
func (m *machine) some() (st *modelStream, there bool) {
	st = m.streams[m.anyName()]
	there = st != nil && st.status(m.now) != "CREATING" && st.status(m.now) != "DELETING"
	return st, there
}

// seldom draws true once in four times, for actions that would leave little to do for the others.
func (m *machine) seldom() bool { return rapid.IntRange(0, 3).Draw(m.T, "seldom") == 0 }

// state is a stream's status; "" if it is not there.
func (m *machine) state(name string) string {
	if st := m.streams[name]; st != nil {
		return st.status(m.now)
	}
	return ""
}

// anyHash draws a hash key.
func (m *machine) anyHash() *big.Int {
	high := rapid.Uint64().Draw(m.T, "high")
	low := rapid.Uint64().Draw(m.T, "low")
	hash := new(big.Int).Lsh(new(big.Int).SetUint64(high), 64)
	return hash.Or(hash, new(big.Int).SetUint64(low))
}
