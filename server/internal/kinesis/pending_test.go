package kinesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// settle takes the due steps in place of the resharder, since the resharder's timers do not follow
// a test's clock.
func (n *node) settle() {
	n.t.Helper()
	_, _, err := n.resharder.carryOut(n.ctx)
	n.must(err)
}

func slow(cfg *Config) { cfg.StreamDelay = 10 * time.Second }

// reshardings are one of each kind, of a stream with two shards, and the result.
var reshardings = map[string]struct {
	in     m
	shards string // ids, with a star for an open one
}{
	"SplitShard": {
		m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "99"}, "0 1* 2* 3*",
	},
	"MergeShards": {
		m{"StreamName": "orders", "ShardToMerge": "0", "AdjacentShardToMerge": "1"}, "0 1 2*",
	},
	"UpdateShardCount": {scaleTo("orders", 3), "0 1 2* 3 4 5* 6*"},
}

// states returns the shards of a stream in the form of reshardings, and checks their shape.
func (n *node) states(stream string) (states string) {
	n.t.Helper()
	shards := n.list(stream)
	checkShape(n.t, shards)
	for i, sh := range shards {
		if i > 0 {
			states += " "
		}
		index, _ := shardid.Parse(sh.ShardId)
		states += fmt.Sprint(index)
		if sh.SequenceNumberRange.EndingSequenceNumber == "" {
			states += "*"
		}
	}
	return states
}

// putLow puts a record with the lowest hash key, which belongs to shard 0 at first.
func (n *node) putLow(data string) (shard string) {
	n.t.Helper()
	out := n.call("PutRecord", m{
		"StreamName": "orders", "PartitionKey": "k", "ExplicitHashKey": "0", "Data": []byte(data),
	})
	return out["ShardId"].(string)
}

// While the stream is UPDATING its shards are as before: they take records and can be read. At the
// end of it, and not sooner, the parents close and the children open.
func TestReshardAtTheEndOfUpdating(t *testing.T) {
	for operation, test := range reshardings {
		t.Run(operation, func(t *testing.T) {
			inBubble(t, func(n *node) {
				n.must(n.EnsureStream(n.ctx, here, "orders", 2))
				time.Sleep(time.Minute)
				n.putLow("one")
				latest := n.iterator("orders", "0", "LATEST")
				asked := time.Now()
				n.call(operation, test.in)
				before := n.list("orders")
				for range 10 {
					if got := n.states("orders"); got != "0* 1*" {
						t.Fatalf("%v later the shards are %s", time.Since(asked), got)
					}
					if status := n.status("orders"); status != catalogue.StatusUpdating {
						t.Fatalf("%v later the stream is %s", time.Since(asked), status)
					}
					if shard := n.putLow("two"); shard != longID("0") {
						t.Errorf("while UPDATING a record goes to %s", shard)
					}
					for other, in := range reshardings {
						n.refused(other, in.in, codeInUse, "instead in state UPDATING")
					}
					time.Sleep(time.Second - time.Millisecond/5)
				}
				n.register("orders", "app") // other changes leave the pending ones alone
				got := n.get(latest, 0)
				if len(got.Records) != 10 || got.NextShardIterator == "" || got.ChildShards != nil {
					t.Errorf("before the end, the parent reads %+v", got)
				}
				if got := n.list("orders"); fmt.Sprint(got) != fmt.Sprint(before) {
					t.Errorf("just before the end the shards are\n%v\nat first\n%v", got, before)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if status := n.status("orders"); status != catalogue.StatusActive {
					t.Errorf("at the end the stream is %s", status)
				}
				if got := n.states("orders"); got != test.shards {
					t.Errorf("at the end the shards are %s, want %s", got, test.shards)
				}
				st := n.streams.peek(here, "orders", n.streams.clock.read())
				if at := st.Shards[0].Closed - asked.UnixMilli(); at != 10_000 {
					t.Errorf("the parent closed after %d ms", at)
				}
				if st.OpenShards()[0].Opened != st.Shards[0].Closed {
					t.Error("the child opened at another time than the parent closed")
				}
				if shard := n.putLow("three"); shard != st.OpenShards()[0].ID() {
					t.Errorf("at the end a record goes to %s", shard)
				}
				if end := n.get(got.NextShardIterator, 0); len(end.ChildShards) == 0 {
					t.Errorf("the end of the parent is %+v", end)
				}
			}, slow)
		})
	}
}

// A pending reshard is done after a restart or a crash: when it is due, at once if it is overdue.
// Until then the stream is UPDATING.
func TestPendingReshardSurvives(t *testing.T) {
	for operation, test := range reshardings {
		for name, pause := range map[string]time.Duration{
			"before": 5 * time.Second, "after": 20 * time.Second,
		} {
			t.Run(operation+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := startNode(t, vfs.NewCrashable(), slow)
					n.must(n.EnsureStream(n.ctx, here, "orders", 2))
					n.putLow("one")
					n.call(operation, test.in)
					n.putLow("two")
					time.Sleep(time.Second)
					left := n.fs.(*vfs.Mem).Crash(rand.New(rand.NewPCG(1, uint64(pause))))
					n.stop()
					time.Sleep(pause)
					n = startNode(t, left, slow)
					if pause < 9*time.Second {
						synctest.Wait()
						if got := n.states("orders") + n.status("orders"); got != "0* 1*UPDATING" {
							t.Errorf("soon after the start there is %s", got)
						}
						n.stop() // and once more, in order: from a snapshot
						n = startNode(t, left, slow)
						n.putLow("three")
						time.Sleep(4 * time.Second)
					}
					synctest.Wait()
					if got := n.states("orders") + n.status("orders"); got != test.shards+"ACTIVE" {
						t.Errorf("once it is due there is %s, want %s", got, test.shards)
					}
					if shard := n.putLow("four"); shard == longID("0") {
						t.Error("a closed shard has taken a record")
					}
					n.settle() // nothing is done twice
					if got := n.states("orders"); got != test.shards {
						t.Errorf("later there is %s, want %s", got, test.shards)
					}
					n.stop()
				})
			})
		}
	}
}

// A client that sees ACTIVE sees the children: the test looks at the stream all the time.
func TestActiveMeansResharded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewMem()}
		n := startNode(t, disk, slow)
		n.must(n.EnsureStream(n.ctx, here, "orders", 2))
		n.call("SplitShard", reshardings["SplitShard"].in)
		disk.shut() // the reshard's frame does not become durable for a while
		release := time.AfterFunc(15*time.Second, disk.release)
		defer release.Stop()
		asked := time.Now()
		time.Sleep(time.Second / 2) // so that no look comes just when it is due
		for {
			status := n.status("orders")
			shards := n.states("orders")
			if status == catalogue.StatusActive {
				if shards != "0 1* 2* 3*" {
					t.Errorf("the stream is ACTIVE with the shards %s", shards)
				}
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(asked); took < 15*time.Second || took > 16*time.Second {
			t.Errorf("it is shown after %v, it was durable after 15 s", took)
		}
		n.stop()
	})
}

// If the log accepts nothing when a reshard is due, the stream stays UPDATING, and the reshard is
// done as soon as the log accepts it.
func TestPendingReshardIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		n := startNode(t, disk, slow)
		n.must(n.EnsureStream(n.ctx, here, "orders", 2))
		n.call("SplitShard", reshardings["SplitShard"].in)
		synctest.Wait()
		disk.SetLimit(disk.Used())
		for i := 0; n.streams.log.Err() == nil; i++ { // until the log's files are full
			ctx, cancel := context.WithTimeout(n.ctx, time.Millisecond)
			_, _ = n.raw(ctx, "CreateStream", fmt.Sprintf(`{"StreamName":"s%d","ShardCount":900}`, i))
			cancel()
		}
		if !errors.Is(n.streams.log.Err(), wal.ErrStalled) {
			t.Fatal(n.streams.log.Err())
		}
		time.Sleep(time.Minute)
		if st := n.streams.peek(here, "orders", n.streams.clock.read()); len(st.Shards) != 2 ||
			st.Status(n.streams.clock.read()) != catalogue.StatusUpdating {
			t.Errorf("on a full disk there is %+v", st)
		}
		disk.SetLimit(1 << 40)
		time.Sleep(time.Minute)
		if got := n.states("orders") + n.status("orders"); got != "0 1* 2* 3*ACTIVE" {
			t.Errorf("when there is room again there is %s", got)
		}
		n.stop()
	})
}

// Many streams are resharded at once, each at its time; a stream that is deleted before that does
// no harm.
func TestManyPendingReshards(t *testing.T) {
	inBubble(t, func(n *node) {
		const streams = 50
		var names []string
		for i := range streams {
			name := fmt.Sprint("s", i)
			names = append(names, name)
			n.must(n.EnsureStream(n.ctx, here, name, 1))
		}
		for i, name := range names {
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
			n.call("SplitShard",
				m{"StreamName": name, "ShardToSplit": "0", "NewStartingHashKey": "99"})
		}
		time.Sleep(6*time.Second + time.Millisecond)
		for i := range streams / 10 {
			synctest.Wait()
			done := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return n.status(name) != catalogue.StatusActive
			})
			if !slices.Equal(done, names[:10*(i+1)]) {
				t.Errorf("%d s after the first of them was due, %v are done", i, done)
			}
			time.Sleep(time.Second)
		}
	}, slow)
}
