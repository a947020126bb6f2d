package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// scheduled runs a test in virtual time against a server with a stream "s" of three shards.
func scheduled(
	t *testing.T, spec string, test func(t *testing.T, s *runneltest.Server),
	options ...runneltest.Option,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		options := append([]runneltest.Option{
			runneltest.InMemory(), runneltest.WithStream("s", 3), runneltest.WithFaults(spec),
		}, options...)
		test(t, runneltest.NewServer(t, options...))
	})
}

// family returns the shards of a stream with their parents and ranges, and how many are open.
func family(t *testing.T, s *runneltest.Server, name string) (family []string, open int) {
	t.Helper()
	got, err := s.Kinesis().ListShards(t.Context(), &kinesis.ListShardsInput{
		StreamName: aws.String(name),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range got.Shards {
		if sh.SequenceNumberRange.EndingSequenceNumber == nil {
			open++
		}
		family = append(family, fmt.Sprint(*sh.ShardId, " of ", aws.ToString(sh.ParentShardId),
			aws.ToString(sh.AdjacentParentShardId), " from ", *sh.HashKeyRange.StartingHashKey))
	}
	return family, open
}

// reshards is how many reshards the server has counted.
func reshards(s *runneltest.Server) int {
	counts := s.FaultCounts()
	return counts["SplitShard:reshard"] + counts["MergeShards:reshard"]
}

func TestReshardIsTheSeeds(t *testing.T) {
	run := func(spec string) (shards []string) {
		scheduled(t, spec, func(t *testing.T, s *runneltest.Server) {
			for n := range 7 {
				if got := reshards(s); got != min(n, 6) {
					t.Errorf("%s: %d reshards after %d s, want %d", spec, got, 2*n, min(n, 6))
				}
				if n == 2 { // a call in between changes nothing
					family(t, s, "s")
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
			}
			shards, _ = family(t, s, "s")
		})
		return shards
	}
	one := run("seed=7 s:reshard=2s@1-6")
	if len(one) < 9 {
		t.Errorf("only these shards after six reshards: %q", one)
	}
	if again := run("seed=7 s:reshard=2s@1-6"); !slices.Equal(one, again) {
		t.Errorf("the same seed gave %q and %q", one, again)
	}
	if other := run("seed=8 s:reshard=2s@1-6"); slices.Equal(one, other) {
		t.Errorf("another seed gave the same: %q", one)
	}
}

// TestReshardStaysInBounds also shows that turns go on over a restart, and that only the streams of
// the rule are resharded.
func TestReshardStaysInBounds(t *testing.T) {
	scheduled(t, "s:reshard=1s", func(t *testing.T, s *runneltest.Server) {
		most, fewest := 0, 9
		for n := range 200 {
			if n == 100 {
				if err := s.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			_, open := family(t, s, "s")
			most, fewest = max(most, open), min(fewest, open)
		}
		if fewest != 1 || most != 6 {
			t.Errorf("from %d to %d open shards, want 1 to 6", fewest, most)
		}
		if got := reshards(s); got < 198 {
			t.Errorf("%d reshards in 200 s", got)
		}
		if others, _ := family(t, s, "other"); len(others) != 2 {
			t.Errorf("another stream has %q", others)
		}
	}, runneltest.WithStream("other", 2))
}

// TestReshardWaitsForStates: a stream that is busy for longer than the rule's interval is resharded
// as soon as it is ACTIVE, and never sooner.
func TestReshardWaitsForStates(t *testing.T) {
	scheduled(t, "*:reshard=7s", func(t *testing.T, s *runneltest.Server) {
		time.Sleep(time.Minute + 500*time.Millisecond)
		if got := reshards(s); got < 5 || got > 6 {
			t.Errorf("%d reshards in a minute, of a stream that is busy for 10 s after each", got)
		}
	}, runneltest.WithStreamDelay(10*time.Second))
}

func TestReshardAtRunTime(t *testing.T) {
	scheduled(t, "", func(t *testing.T, s *runneltest.Server) {
		_, err := s.Kinesis().CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String("on-demand"),
			StreamModeDetails: &types.StreamModeDetails{
				StreamMode: types.StreamModeOnDemand,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		set := func(spec string) {
			t.Helper()
			if err := s.SetFaults(spec); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10*time.Second + time.Millisecond)
			synctest.Wait()
		}
		set("")
		if got := reshards(s); got != 0 {
			t.Errorf("%d reshards without a rule", got)
		}
		set("*:reshard=1s SplitShard:throttle MergeShards:throttle *:lose-request")
		if got := reshards(s); got != 10 {
			t.Errorf("%d reshards in 10 s, whatever strikes clients; want 10", got)
		}
		set("nobody:reshard=1s")
		if got := reshards(s); got != 10 {
			t.Errorf("%d reshards once the rule was about another stream, want 10", got)
		}
		shards, _ := family(t, s, "on-demand")
		for _, sh := range shards {
			if !strings.Contains(sh, " of  from ") {
				t.Errorf("of the stream on demand: %s", sh)
			}
		}
		if _, err := s.Kinesis().DeleteStream(t.Context(), &kinesis.DeleteStreamInput{
			StreamName: aws.String("s"),
		}); err != nil {
			t.Fatal(err)
		}
		set("*:reshard=1s")
		if got := reshards(s); got != 10 {
			t.Errorf("%d reshards once the stream was deleted, want 10", got)
		}
	})
}
