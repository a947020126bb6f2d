package kinesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// Settings of streams, consumers and accounts survive a loss of power as they were acknowledged.
// The test makes random settings with a crash now and then, and compares everything that the API
// shows.
func TestSettingsSurvive(t *testing.T) {
	taken := 0
	for seed := range uint64(4 * soak()) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := settingsStory{rng: rand.New(rand.NewPCG(seed, 11)), clock: newTestClock()}
			s.n = startNode(t, vfs.NewCrashable(), at(s.clock))
			for range 150 {
				s.clock.advance(time.Duration(s.rng.IntN(3600)) * time.Second)
				if s.rng.IntN(12) > 0 {
					s.set()
					continue
				}
				before := s.everything()
				left := s.n.fs.(*vfs.Mem).Crash(s.rng)
				s.n.stop()
				s.n = startNode(t, left, at(s.clock))
				if after := s.everything(); after != before {
					t.Fatalf("after a crash there is\n%s\nbefore\n%s", after, before)
				}
			}
			taken += s.taken
		})
	}
	if taken < 4*soak()*20 {
		t.Errorf("only %d calls of %d were taken", taken, 4*soak()*150)
	}
	t.Logf("soak: %d seeds, %d operations", 4*soak(), 4*soak()*150)
}

type settingsStory struct {
	n     *node
	rng   *rand.Rand
	clock *testClock
	taken int
}

// worlds and streams are few, so that the calls meet.
func (s *settingsStory) target() (name, arn string) {
	s.n.world = wire.World{
		Account: []string{"000000000000", "111111111111"}[s.rng.IntN(2)],
		Region:  []string{"us-east-1", "eu-west-1"}[s.rng.IntN(2)],
	}
	name = fmt.Sprint("stream-", s.rng.IntN(2))
	return name, catalogue.ARNPrefix(s.n.world) + name
}

func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// set makes a random call. Only the API's own errors may refuse it.
func (s *settingsStory) set() {
	name, arn := s.target()
	tags := m{fmt.Sprint("tag-", s.rng.IntN(9)): fmt.Sprint(s.rng.IntN(99))}
	metrics := []string{one(s.rng, shardMetrics...), one(s.rng, append(shardMetrics, "ALL")...)}
	mode := m{"StreamMode": one(s.rng, catalogue.ModeOnDemand, catalogue.ModeProvisioned)}
	key := m{"StreamName": name, "EncryptionType": "KMS", "KeyId": one(s.rng, "alias/a", someKey)}
	resource := one(s.rng, arn, s.consumer(arn))
	calls := []struct {
		operation string
		in        m
	}{
		{"CreateStream", m{"StreamName": name, "Tags": tags, "MaxRecordSizeInKiB": 2048}},
		{"CreateStream", m{"StreamName": name, "ShardCount": 1}},
		{"DeleteStream", m{"StreamName": name, "EnforceConsumerDeletion": s.rng.IntN(9) == 0}},
		{"AddTagsToStream", m{"StreamName": name, "Tags": tags}},
		{"RemoveTagsFromStream", m{"StreamARN": arn, "TagKeys": []string{"tag-0", "tag-1"}}},
		{"TagResource", m{"ResourceARN": resource, "Tags": tags}},
		{"UntagResource", m{"ResourceARN": resource, "TagKeys": []string{"tag-2", "tag-3"}}},
		{"PutResourcePolicy", m{"ResourceARN": resource, "Policy": fmt.Sprintf(
			`{"Statement":[],"Id":"%d"}`, s.rng.IntN(99))}},
		{"DeleteResourcePolicy", m{"ResourceARN": resource}},
		{"StartStreamEncryption", key},
		{"StopStreamEncryption", key},
		{"EnableEnhancedMonitoring", m{"StreamARN": arn, "ShardLevelMetrics": metrics}},
		{"DisableEnhancedMonitoring", m{"StreamARN": arn, "ShardLevelMetrics": metrics[:1]}},
		{"UpdateMaxRecordSize", m{"StreamARN": arn, "MaxRecordSizeInKiB": 1024 + s.rng.IntN(99)}},
		{"UpdateStreamMode", m{"StreamARN": arn, "StreamModeDetails": mode}},
		{"UpdateStreamWarmThroughput", m{"StreamARN": arn, "WarmThroughputMiBps": s.rng.IntN(99)}},
		{"IncreaseStreamRetentionPeriod", m{"StreamName": name, "RetentionPeriodHours": 48}},
		{"DecreaseStreamRetentionPeriod", m{"StreamName": name, "RetentionPeriodHours": 24}},
		{"RegisterStreamConsumer", m{"StreamARN": arn, "ConsumerName": "reader", "Tags": tags}},
		{"UpdateAccountSettings", m{"MinimumThroughputBillingCommitment": m{
			"Status": one(s.rng, catalogue.CommitmentEnabled, catalogue.CommitmentDisabled),
		}}},
	}
	call := one(s.rng, calls...)
	_, err := s.n.try(call.operation, call.in)
	if err == nil {
		s.taken++
	} else if !errors.As(err, new(*wire.Error)) {
		s.n.t.Fatalf("%s %v: %v", call.operation, call.in, err)
	}
}

// consumer returns the ARN of the stream's consumer, or of a missing one if there is none.
func (s *settingsStory) consumer(arn string) string {
	out, err := s.n.try("ListStreamConsumers", m{"StreamARN": arn})
	if err != nil || len(out["Consumers"].([]any)) == 0 {
		return arn + "/consumer/nobody:1"
	}
	return out["Consumers"].([]any)[0].(m)["ConsumerARN"].(string)
}

// everything is all answers about all worlds' streams, consumers and accounts, as text.
func (s *settingsStory) everything() string {
	var all []any
	ask := func(operation string, in m) m {
		answer := s.n.call(operation, in)
		all = append(all, operation, answer)
		return answer
	}
	for _, account := range []string{"000000000000", "111111111111"} {
		for _, region := range []string{"us-east-1", "eu-west-1"} {
			s.n.world = wire.World{Account: account, Region: region}
			ask("DescribeAccountSettings", m{})
			ask("DescribeLimits", m{})
			for _, name := range ask("ListStreams", m{})["StreamNames"].([]any) {
				arn := catalogue.ARNPrefix(s.n.world) + name.(string)
				ask("DescribeStream", m{"StreamName": name})
				ask("DescribeStreamSummary", m{"StreamName": name})
				ask("ListTagsForStream", m{"StreamName": name})
				ask("GetResourcePolicy", m{"ResourceARN": arn})
				for _, c := range ask("ListStreamConsumers", m{"StreamARN": arn})["Consumers"].([]any) {
					consumer := c.(m)["ConsumerARN"].(string)
					ask("ListTagsForResource", m{"ResourceARN": consumer})
					ask("GetResourcePolicy", m{"ResourceARN": consumer})
				}
			}
		}
	}
	text, err := json.MarshalIndent(all, "", " ")
	s.n.must(err)
	return string(text)
}
