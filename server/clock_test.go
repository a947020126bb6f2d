package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

const year = 365 * 24 * time.Hour

// clockedServer is a server in virtual time, on a machine with boots and a clock that is stepped.
type clockedServer struct {
	t      *testing.T
	cfg    server.Config
	disk   *vfs.Mem
	offset atomic.Int64 // of the machine's clock, ns
	boot   int
	booted time.Time
	log    bytes.Buffer
	open   *server.Server
}

// newClockedServer starts a server of which the machine has been up for two hours.
func newClockedServer(t *testing.T, limits string) *clockedServer {
	s := &clockedServer{t: t, disk: vfs.NewMem(), booted: time.Now().Add(-2 * time.Hour)}
	s.cfg = server.Config{
		LogFileSize: 1 << 20, Limits: limits, StreamDelay: 10 * time.Second,
		Logger:  slog.New(slog.NewTextHandler(&s.log, nil)),
		Streams: []server.StreamSpec{{Name: "s", Shards: 1}},
	}
	s.start()
	return s
}

func (s *clockedServer) start() {
	s.t.Helper()
	opened, err := server.Open(context.Background(), s.cfg, seam.OnFS(s.disk),
		seam.WithWall(func() time.Time {
			return time.Now().Add(time.Duration(s.offset.Load()))
		}),
		seam.WithBoot(func() (string, time.Duration) {
			return fmt.Sprint("boot-", s.boot), time.Since(s.booted)
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.open = opened
}

func (s *clockedServer) stop() {
	s.t.Helper()
	if err := s.open.Close(context.Background()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *clockedServer) reboot() { s.boot, s.booted = s.boot+1, time.Now() }

// step steps the machine's clock, and lets the server note it.
func (s *clockedServer) step(by time.Duration) {
	s.offset.Add(int64(by))
	s.call("ListStreams", map[string]any{})
	synctest.Wait()
}

// try makes a call and returns its answer, and whether it was served.
func (s *clockedServer) try(operation string, in map[string]any) (map[string]any, bool) {
	s.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	w := httptest.NewRecorder()
	s.open.Handler().ServeHTTP(w, r)
	var out map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			s.t.Fatalf("%s answers %s: %v", operation, w.Body, err)
		}
	}
	return out, w.Code == http.StatusOK
}

func (s *clockedServer) call(operation string, in map[string]any) map[string]any {
	s.t.Helper()
	out, served := s.try(operation, in)
	if !served {
		s.t.Fatalf("%s %v: %v", operation, in, out)
	}
	return out
}

func (s *clockedServer) put(stream string) {
	s.t.Helper()
	s.call("PutRecord", map[string]any{"StreamName": stream, "Data": "", "PartitionKey": "k"})
}

// count returns the number of records of a stream's first shard.
func (s *clockedServer) count(stream string) int {
	s.t.Helper()
	it := s.call("GetShardIterator", map[string]any{
		"StreamName": stream, "ShardId": "shardId-000000000000",
		"ShardIteratorType": "TRIM_HORIZON",
	})["ShardIterator"]
	return len(s.call("GetRecords", map[string]any{"ShardIterator": it})["Records"].([]any))
}

func (s *clockedServer) status(stream string) any {
	s.t.Helper()
	out := s.call("DescribeStreamSummary", map[string]any{"StreamName": stream})
	return out["StreamDescriptionSummary"].(map[string]any)["StreamStatus"]
}

// becomes fails unless a stream has a state for ten seconds and is ACTIVE then.
func (s *clockedServer) becomes(stream, state string) {
	s.t.Helper()
	time.Sleep(9900 * time.Millisecond)
	if got := s.status(stream); got != state {
		s.t.Errorf("%s is %v after 9.9 s, want %s", stream, got, state)
	}
	time.Sleep(200 * time.Millisecond)
	if got := s.status(stream); got != "ACTIVE" {
		s.t.Errorf("%s is %v after 10.1 s", stream, got)
	}
}

// wantHealth fails unless /health answers 200, and with a second line with a text, or without one
// for "".
func (s *clockedServer) wantHealth(text string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.open.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil))
	first, second, _ := strings.Cut(w.Body.String(), "\n")
	if w.Code != http.StatusOK || first != "ok" || (second == "") != (text == "") ||
		!strings.Contains(second, text) {
		s.t.Errorf("/health answers %d %q, want a line with %q", w.Code, w.Body, text)
	}
}

// works fails unless streams change their states in time, take records, and have a fair limit of
// two records a second.
func (s *clockedServer) works(n int) {
	s.t.Helper()
	name := fmt.Sprint("new-", n)
	s.call("CreateStream", map[string]any{"StreamName": name, "ShardCount": 1})
	s.becomes(name, "CREATING")
	s.put(name)
	s.call("SplitShard", map[string]any{
		"StreamName": name, "ShardToSplit": "shardId-000000000000",
		"NewStartingHashKey": "170141183460469231731687303715884105728",
	})
	s.becomes(name, "UPDATING")
	refused := 0
	for range 60 {
		time.Sleep(500 * time.Millisecond)
		if _, served := s.try("PutRecord", map[string]any{
			"StreamName": name, "Data": "", "PartitionKey": "k",
		}); !served {
			refused++
		}
	}
	if refused > 0 {
		s.t.Errorf("the limit refuses %d of 60 records that keep to it", refused)
	}
	if got := s.count("s"); got != 2 {
		s.t.Errorf("the stream has %d records, want 2", got)
	}
}

// A clock that is ahead for a while and then corrected loses no record and delays nothing, whether
// the server's clock has followed it or not, and over restarts.
func TestClockAheadForAWhile(t *testing.T) {
	for _, c := range []struct {
		by, last time.Duration
		follows  bool
	}{
		{2 * time.Hour, time.Minute, false},
		{year, 9 * time.Minute, false},
		{year, time.Hour, true},
		{50 * time.Minute, time.Minute, true},
	} {
		t.Run(fmt.Sprintf("%v for %v", c.by, c.last), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newClockedServer(t, "write-records=2")
				time.Sleep(11 * time.Second)
				s.put("s")
				s.step(c.by)
				s.put("s")
				s.works(1)
				for range int(c.last / time.Minute) {
					time.Sleep(time.Minute)
					s.call("ListStreams", map[string]any{})
				}
				s.step(-c.by)
				s.works(2)
				time.Sleep(10 * time.Minute) // ten sweeps
				s.works(3)
				s.stop()
				s.start()
				s.works(4)
				if c.follows {
					s.wantHealth("ahead of the system's clock: no data expire")
				} else {
					s.wantHealth("")
				}
				s.stop()
			})
		})
	}
}

// After a clock that was followed a year ahead is corrected, nothing expires until the operator
// says that the clock is right. Then data expire by the time that has gone by.
func TestAcceptedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newClockedServer(t, "")
		time.Sleep(11 * time.Second)
		s.put("s")
		s.step(year)
		time.Sleep(12 * time.Minute)
		s.put("s")
		s.step(-year)
		time.Sleep(25 * time.Hour)
		s.put("s")
		time.Sleep(2 * time.Minute)
		if got := s.count("s"); got != 3 {
			t.Errorf("while the clocks differ, the stream has %d records, want 3", got)
		}
		s.stop()
		s.cfg.AcceptClock = true
		s.start()
		s.wantHealth("says is right")
		time.Sleep(2 * time.Minute)
		if got := s.count("s"); got != 1 {
			t.Errorf("with an accepted clock, the stream has %d records, want 1", got)
		}
		s.stop()
		s.cfg.AcceptClock = false
		s.start()
		time.Sleep(21 * time.Hour)
		if got := s.count("s"); got != 1 {
			t.Errorf("a record expires early: there are %d, want 1", got)
		}
		time.Sleep(4 * time.Hour)
		if got := s.count("s"); got != 0 {
			t.Errorf("a restart forgets that the clock is accepted: %d records, want 0", got)
		}
		s.stop()
	})
}

// A boot with a wrong clock removes nothing in its first hour, and nothing after that if the clock
// is corrected, or if it is too far ahead to be right.
func TestClockAheadAtABoot(t *testing.T) {
	for _, by := range []time.Duration{20 * 24 * time.Hour, year, -year} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newClockedServer(t, "write-records=2")
				time.Sleep(11 * time.Second)
				s.put("s")
				s.put("s")
				s.stop()
				s.reboot()
				s.offset.Add(int64(by))
				s.start()
				s.works(1)
				time.Sleep(40 * time.Minute)
				s.works(2)
				s.step(-by)
				time.Sleep(3 * time.Hour)
				s.works(3)
				s.stop()
				s.cfg.AcceptClock = true
				s.start()
				time.Sleep(3 * time.Minute)
				s.works(4)
				s.stop()
			})
		})
	}
}
