package reshard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

func putOne(t *testing.T, client *kinesis.Client, key, explicit string, data []byte) {
	t.Helper()
	in := &kinesis.PutRecordInput{StreamName: aws.String(stream), PartitionKey: &key, Data: data}
	if explicit != "" {
		in.ExplicitHashKey = &explicit
	}
	if _, err := client.PutRecord(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// Observe reports each record once, at its place in the key space, with every byte
// counted, over a reshard and faults.
func TestObserveLast(t *testing.T) {
	inBubble(t, 2, "GetRecords:throttle%20,GetShardIterator:error-500@2", func(
		t *testing.T, _ *runneltest.Server, client *kinesis.Client,
	) {
		putOne(t, client, "long ago", "", []byte("x"))
		time.Sleep(time.Hour)
		want := map[string]int{}
		var bytes uint64
		for i := range 50 {
			key := fmt.Sprint("k", i%7)
			putOne(t, client, key, "", make([]byte, 100))
			want[key]++
			bytes += uint64(len(key)) + 100
		}
		var encoder aggregate.Encoder
		encoder.Reset()
		for i := range 9 {
			// Of the first shard's half, whatever the partition keys.
			if err := encoder.Add(aggregate.Record{
				PartitionKey: fmt.Sprint("agg", i), ExplicitHashKey: fmt.Sprint(1000 + i), Data: make([]byte, i*5),
			}); err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprint("agg", i)]++
		}
		data := encoder.Seal(nil)
		putOne(t, client, "a", "7", data)
		bytes += uint64(len(data)) + 1
		// An explicit hash key that its partition key is not near to.
		far, other := "far", "170141183460469231731687303715884105729"
		if keyspace.Of(far).Hi>>63 == 1 {
			other = "5"
		}
		putOne(t, client, far, other, make([]byte, 30))
		bytes += 33
		want[far]++
		planned, err := plan.Uniform(keyspace.Uniform(2), 3, 0)
		if err == nil {
			err = reshard.Apply(t.Context(), client, stream, planned, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		putOne(t, client, "late", "", make([]byte, 40))
		bytes += 44
		want["late"]++
		time.Sleep(time.Second)

		got, sum := map[string]int{}, uint64(0)
		seen, err := reshard.Observe(t.Context(), client, stream,
			reshard.Window{Last: 30 * time.Minute, Parallel: 2}, func(s reshard.Seen) {
				got[s.Key]++
				sum += uint64(s.Bytes)
				if hash := keyspace.Of(s.Key); s.Key != far && s.Of == 1 && (!s.Placed || s.Hash != hash) {
					t.Errorf("%+v, want the hash key %v", s, hash)
				}
				if s.Of == 9 && (!s.Placed || s.Hash.Hi != 0 || s.Hash.Lo < 1000) {
					t.Errorf("of an aggregate: %+v", s)
				}
				if s.Key == far && (s.Placed || s.Hash.Hi>>63 == keyspace.Of(far).Hi>>63 || s.Bytes != 33) {
					t.Errorf("with an explicit hash key: %+v", s)
				}
			})
		if err != nil || seen.Records != 53 || seen.Bytes != bytes || sum != bytes ||
			seen.Guessed != 33 || seen.Took != 30*time.Minute {
			t.Errorf("%+v and %d bytes, want %d: %v", seen, sum, bytes, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}

// Records beyond one read's size come with the next read.
func TestObservePages(t *testing.T) {
	inBubble(t, 1, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		for range 14 {
			putOne(t, client, "k", "", make([]byte, 1_000_000))
		}
		time.Sleep(10 * time.Minute)
		seen, err := reshard.Observe(t.Context(), client, stream, reshard.Window{Last: time.Hour},
			func(reshard.Seen) {})
		// The stream has been there for less than an hour.
		if err != nil || seen.Took < 10*time.Minute || seen.Took > 12*time.Minute {
			t.Errorf("%+v, %v", seen, err)
		}
		time.Sleep(20 * time.Hour)
		if seen, err := reshard.Observe(t.Context(), client, stream,
			reshard.Window{Last: 99 * time.Hour}, func(reshard.Seen) {}); err != nil ||
			seen.Took < 20*time.Hour || seen.Took > 21*time.Hour {
			t.Errorf("%+v, %v", seen, err)
		}
		if seen.Records != 14 || seen.Bytes != 14*1_000_001 {
			t.Errorf("%+v, %v", seen, err)
		}
	})
}

// From now on, what arrives in the window is seen, and nothing else; more shards than are read
// at a time are read in turn.
func TestObserveNow(t *testing.T) {
	inBubble(t, 3, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		putOne(t, client, "before", "", []byte("x"))
		for parallel, took := range map[int]time.Duration{0: 10 * time.Second, 1: 30 * time.Second} {
			ctx, cancel := context.WithCancel(t.Context())
			var busy sync.WaitGroup
			busy.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					putOne(t, client, fmt.Sprint("k", i), "", []byte("0123456789"))
					time.Sleep(100 * time.Millisecond)
				}
			})
			began, records := time.Now(), uint64(0)
			seen, err := reshard.Observe(t.Context(), client, stream,
				reshard.Window{For: 10 * time.Second, Parallel: parallel}, func(s reshard.Seen) {
					if records++; s.Key == "before" {
						t.Error("a record from before was seen")
					}
				})
			cancel()
			busy.Wait()
			if d := time.Since(began); err != nil || d < took || d > took+3*time.Second {
				t.Errorf("%d at a time: %s, %v", parallel, d, err)
			}
			if records != seen.Records || records < 80 || records > 120 || seen.Shards != 3 ||
				seen.Took != 10*time.Second {
				t.Errorf("%d at a time: %d of about 100 records, %+v", parallel, records, seen)
			}
		}
	})
}

// A reshard in the window, an ended context and invalid windows are errors.
func TestObserveRefuses(t *testing.T) {
	inBubble(t, 2, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		var busy sync.WaitGroup
		busy.Go(func() {
			time.Sleep(time.Second)
			planned, err := plan.Uniform(keyspace.Uniform(2), 3, 0)
			if err == nil {
				err = reshard.Apply(t.Context(), client, stream, planned, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
		none := func(reshard.Seen) {}
		_, err := reshard.Observe(t.Context(), client, stream, reshard.Window{For: 5 * time.Minute}, none)
		if !errors.Is(err, reshard.ErrResharded) {
			t.Errorf("got %v", err)
		}
		busy.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCut)
		defer cancel()
		if _, err := reshard.Observe(ctx, client, stream, reshard.Window{}, none); !errors.Is(err, errCut) {
			t.Errorf("got %v", err)
		}
		if _, err := reshard.Observe(t.Context(), client, stream, reshard.Window{For: -1}, none); err == nil {
			t.Error("a negative window was taken")
		}
		if _, err := reshard.Observe(t.Context(), client, "nowhere", reshard.Window{}, none); err == nil {
			t.Error("no stream was read")
		}
	})
}

func TestListAndOpen(t *testing.T) {
	inBubble(t, 2, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		planned, err := plan.Uniform(keyspace.Uniform(2), 1, 0)
		if err == nil {
			err = reshard.Apply(t.Context(), client, stream, planned, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		shards, err := reshard.List(t.Context(), client, stream)
		if err != nil || len(shards) != 3 || shards[0].Open() || !shards[2].Open() ||
			fmt.Sprint(shards[2].Parents) != fmt.Sprint([]runnel.ShardID{shards[0].ID, shards[1].ID}) ||
			len(reshard.OpenRanges(shards)) != 1 || shards[2].Range != keyspace.All() {
			t.Errorf("%+v, %v", shards, err)
		}
	})
}
