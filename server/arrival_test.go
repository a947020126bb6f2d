package server_test

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// steppedServer is a server in a test that sets its machine's clock.
type steppedServer struct {
	*rapid.T
	ctx     context.Context
	cfg     server.Config
	options []seam.Option
	clock   atomic.Int64 // ms since 1970
	open    *server.Server
}

func (s *steppedServer) start() {
	opened, err := server.Open(s.ctx, s.cfg, s.options...)
	if err != nil {
		s.Fatal(err)
	}
	s.open = opened
}

func (s *steppedServer) stop() {
	if err := s.open.Close(s.ctx); err != nil {
		s.Error(err)
	}
}

// call makes an API call, and decodes the answer into out unless that is nil. It returns the
// answer's header.
func (s *steppedServer) call(operation string, in map[string]any, out any) http.Header {
	s.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	w := httptest.NewRecorder()
	s.open.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		s.Fatalf("%s %s: %d %s", operation, body, w.Code, w.Body)
	}
	if out == nil {
		return w.Header()
	}
	if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
		s.Fatalf("%s answers %s: %v", operation, w.Body, err)
	}
	return w.Header()
}

// arrived is a record as it is read.
type arrived struct {
	SequenceNumber              string
	ApproximateArrivalTimestamp json.Number
}

func (a arrived) at() *big.Float {
	at, _, err := big.ParseFloat(a.ApproximateArrivalTimestamp.String(), 10, 128, big.ToZero)
	if err != nil {
		panic(err)
	}
	return at
}

// read reads a shard from a position on.
func (s *steppedServer) read(shard string, position map[string]any) (records []arrived) {
	position["StreamName"], position["ShardId"] = "s", shard
	var iterator struct{ ShardIterator string }
	s.call("GetShardIterator", position, &iterator)
	var got struct{ Records []arrived }
	s.call("GetRecords", map[string]any{"ShardIterator": iterator.ShardIterator}, &got)
	return got.Records
}

type listedShard struct {
	ShardID               string `json:"ShardId"`
	ParentShardID         string `json:"ParentShardId"`
	AdjacentParentShardID string `json:"AdjacentParentShardId"`
	HashKeyRange          struct{ StartingHashKey, EndingHashKey string }
	SequenceNumberRange   struct{ EndingSequenceNumber string }
}

func (s *steppedServer) shards() (all, open []listedShard) {
	var listed struct{ Shards []listedShard }
	s.call("ListShards", map[string]any{"StreamName": "s"}, &listed)
	for _, sh := range listed.Shards {
		if sh.SequenceNumberRange.EndingSequenceNumber == "" {
			open = append(open, sh)
		}
	}
	return listed.Shards, open
}

// TestArrivalNeverStepsBack: for any steps of the machine's clock, also over restarts, a shard's
// records have arrivals in their order, and a child's arrivals are not before its parents'. So
// AT_TIMESTAMP finds the first record of a time.
func TestArrivalNeverStepsBack(t *testing.T) {
	size(t, "rapid.checks", 40*soak())
	rapid.Check(t, func(t *rapid.T) {
		s := &steppedServer{T: t, ctx: context.Background()}
		noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli()
		s.clock.Store(noon)
		s.cfg = server.Config{
			LogFileSize: 1 << 20, StreamDelay: -1, Logger: quiet,
			Streams: []server.StreamSpec{{Name: "s", Shards: 2}},
		}
		s.options = []seam.Option{
			seam.OnFS(vfs.NewMem()),
			seam.WithWall(func() time.Time { return time.UnixMilli(s.clock.Load()) }),
		}
		s.start()
		defer func() { s.stop() }()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s.step(noon)
		}
		s.awaitClock()
		last := map[string]arrived{}
		all, _ := s.shards()
		for _, sh := range all {
			records := s.read(sh.ShardID, map[string]any{"ShardIteratorType": "TRIM_HORIZON"})
			for i, record := range records {
				for _, parent := range []string{sh.ParentShardID, sh.AdjacentParentShardID} {
					if before, there := last[parent]; there {
						s.follows(record, before)
					}
				}
				if i > 0 {
					s.follows(record, records[i-1])
				}
				s.found(sh.ShardID, records, i)
			}
			if n := len(records); n > 0 {
				last[sh.ShardID] = records[n-1]
			}
		}
	})
}

// awaitClock waits until the server's clock has followed the last step of the machine's, which
// takes a sync. Otherwise a step between two calls could make the second one's iterator expire.
func (s *steppedServer) awaitClock() {
	wall := time.UnixMilli(s.clock.Load()).Truncate(time.Second)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		date, err := http.ParseTime(s.call("ListStreams", map[string]any{}, nil).Get("Date"))
		switch {
		case err != nil:
			s.Fatalf("an answer has no date: %v", err)
		case !date.Before(wall):
			return
		case time.Now().After(deadline):
			s.Fatalf("the server's clock is at %v, and the machine's at %v", date, wall)
		}
	}
}

// step is one random event.
func (s *steppedServer) step(noon int64) {
	_, open := s.shards()
	sh := rapid.SampledFrom(open).Draw(s.T, "shard")
	start, _ := new(big.Int).SetString(sh.HashKeyRange.StartingHashKey, 10)
	end, _ := new(big.Int).SetString(sh.HashKeyRange.EndingHashKey, 10)
	switch rapid.IntRange(0, 19).Draw(s.T, "event") {
	default:
		s.call("PutRecord", map[string]any{
			"StreamName": "s", "Data": "", "PartitionKey": "k",
			"ExplicitHashKey": sh.HashKeyRange.StartingHashKey,
		}, nil)
	case 0, 1, 2, 3, 4: // nearly an hour to either side: steps that the server's clock follows
		const most = 59 * 60 * 1000
		s.clock.Store(noon + rapid.Int64Range(-most, most).Draw(s.T, "clock"))
	case 5, 6:
		s.clock.Add(-rapid.Int64Range(0, 2000).Draw(s.T, "back"))
	case 7, 8:
		middle := new(big.Int).Add(start, end)
		s.call("SplitShard", map[string]any{
			"StreamName": "s", "ShardToSplit": sh.ShardID,
			"NewStartingHashKey": middle.Rsh(middle, 1).String(),
		}, nil)
	case 9, 10:
		for _, other := range open {
			next, _ := new(big.Int).SetString(other.HashKeyRange.StartingHashKey, 10)
			if next.Cmp(end.Add(end, big.NewInt(1))) == 0 {
				s.call("MergeShards", map[string]any{
					"StreamName": "s", "ShardToMerge": sh.ShardID,
					"AdjacentShardToMerge": other.ShardID,
				}, nil)
				return
			}
			end.Sub(end, big.NewInt(1))
		}
	case 11: // the rarest action, since it takes the longest
		s.stop()
		s.start()
	}
}

// follows fails unless a record comes after another.
func (s *steppedServer) follows(record, before arrived) {
	if record.at().Cmp(before.at()) < 0 {
		s.Fatalf("%v arrived before %v", record, before)
	}
	if compareNumbers(record.SequenceNumber, before.SequenceNumber) <= 0 {
		s.Fatalf("%v has a smaller number than %v", record, before)
	}
}

// found fails unless AT_TIMESTAMP of the ith record's time finds the first one of that time.
func (s *steppedServer) found(shard string, records []arrived, i int) {
	for i > 0 && records[i-1].at().Cmp(records[i].at()) == 0 {
		i--
	}
	got := s.read(shard, map[string]any{
		"ShardIteratorType": "AT_TIMESTAMP",
		"Timestamp":         records[i].ApproximateArrivalTimestamp,
	})
	if len(got) == 0 || got[0] != records[i] {
		s.Fatalf("AT_TIMESTAMP %v of %s finds %v", records[i], shard, got)
	}
}
