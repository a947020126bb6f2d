package kinesis

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// summary returns members of DescribeStreamSummary as text.
func (n *node) summary(stream string, members ...string) string {
	n.t.Helper()
	return texts(n.call("DescribeStreamSummary", m{"StreamName": stream})["StreamDescriptionSummary"],
		members)
}

func texts(answer any, members []string) string {
	var got []string
	for _, name := range members {
		got = append(got, fmt.Sprint(answer.(m)[name]))
	}
	return strings.Join(got, " ")
}

const someKey = "arn:aws:kms:us-east-1:000000000000:key/12345678-1234-1234-1234-123456789012"

func TestEncryption(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.must(n.EnsureStream(t.Context(), here, "orders", 1))
	in := func(key string) m {
		return m{"StreamName": "orders", "EncryptionType": "KMS", "KeyId": key}
	}
	told := func(want string) {
		t.Helper()
		if got := n.summary("orders", "EncryptionType", "KeyId", "StreamStatus"); got != want {
			t.Errorf("the stream is %s, want %s", got, want)
		}
		described := n.call("DescribeStream", m{"StreamName": "orders"})["StreamDescription"]
		if got := texts(described, []string{"EncryptionType", "KeyId", "StreamStatus"}); got != want {
			t.Errorf("DescribeStream says %s, want %s", got, want)
		}
	}
	told("NONE <nil> ACTIVE")
	n.call("StartStreamEncryption", in(someKey))
	told("KMS " + someKey + " UPDATING")
	n.refused("StartStreamEncryption", in(someKey), codeInUse, "instead in state UPDATING")
	n.refused("StopStreamEncryption", in(someKey), codeInUse, "instead in state UPDATING")
	clock.advance(time.Second)
	n.call("StartStreamEncryption", in("alias/aws/kinesis"))
	clock.advance(time.Second)
	told("KMS alias/aws/kinesis ACTIVE")
	n.stop()
	n = startNode(t, n.fs, at(clock))
	told("KMS alias/aws/kinesis ACTIVE")
	n.call("StopStreamEncryption", in("alias/other"))
	told("NONE <nil> ACTIVE")
	n.call("StopStreamEncryption", in("alias/other"))
	n.refused("StartStreamEncryption",
		m{"StreamName": "orders", "EncryptionType": "NONE", "KeyId": someKey}, codeInvalid, "NONE")
}

func TestKeyIDs(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	for key, fits := range map[string]bool{
		someKey: true,
		"arn:aws-us-gov:kms:us-gov-west-1:000000000000:alias/a/b":                 true,
		"arn:aws:kms:us-east-1:000000000000:key/alias/a":                          false,
		"arn:aws:kms:us-east-1:000000000000:12345678-1234-1234-1234-123456789012": false,
		"arn:aws:s3:us-east-1:000000000000:alias/a":                               false,
		"12345678-abcd-1234-1234-123456789012":                                    true,
		"12345678-1234-1234-1234-12345678901":                                     false,
		"mrk-1234567890abcdef1234567890abcdef":                                    true,
		"alias/":                                                                  false,
		"alias/a b":                                                               false,
		"x alias/a":                                                               false,
		"key":                                                                     false,
	} {
		in := m{"StreamName": "orders", "EncryptionType": "KMS", "KeyId": key}
		for _, operation := range []string{"StartStreamEncryption", "StopStreamEncryption"} {
			if fits {
				n.call(operation, in)
			} else {
				n.refused(operation, in, codeKeyNotFound, "Invalid keyId "+key)
			}
		}
	}
}

// Records say KMS if they arrived while the stream was encrypted, and no type otherwise; so do
// the answers to puts.
func TestEncryptedRecords(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.must(n.EnsureStream(t.Context(), here, "orders", 1))
	in := m{"StreamName": "orders", "EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"}
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	put := func(want any) {
		t.Helper()
		record := m{"PartitionKey": "k", "Data": ""}
		many := n.call("PutRecords", m{"StreamName": "orders", "Records": []m{record}})
		if many["EncryptionType"] != want {
			t.Errorf("PutRecords answers %v, want the type %v", many, want)
		}
		record["StreamName"] = "orders"
		if one := n.call("PutRecord", record); one["EncryptionType"] != want {
			t.Errorf("PutRecord answers %v, want the type %v", one, want)
		}
		clock.advance(time.Second)
	}
	put(nil)
	n.call("StartStreamEncryption", in)
	put(nil) // the stream is still UPDATING
	put("KMS")
	n.call("StopStreamEncryption", in)
	put("KMS")
	put(nil)
	n.stop()
	n = startNode(t, n.fs, at(clock))
	var got []any
	for _, record := range n.call("GetRecords", m{"ShardIterator": iterator})["Records"].([]any) {
		got = append(got, record.(m)["EncryptionType"])
	}
	if fmt.Sprint(got) != "[<nil> <nil> <nil> <nil> KMS KMS KMS KMS <nil> <nil>]" {
		t.Errorf("the records are %v", got)
	}
}

// DescribeStream shows 100 shards at most, whatever the limit (the model's documentation).
func TestDescribeStreamLimit(t *testing.T) {
	n := newNode(t)
	n.create("orders", 101)
	for _, in := range []m{{}, {"Limit": 100}, {"Limit": 10_000}} {
		in["StreamName"] = "orders"
		out := n.call("DescribeStream", in)["StreamDescription"].(m)
		if got := len(out["Shards"].([]any)); got != 100 || out["HasMoreShards"] != true {
			t.Errorf("%v lists %d shards, more: %v", in, got, out["HasMoreShards"])
		}
	}
}

func TestEnhancedMonitoring(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.must(n.EnsureStream(t.Context(), here, "orders", 1))
	change := func(operation, metrics, current, desired string) {
		t.Helper()
		in := m{"StreamName": "orders", "ShardLevelMetrics": strings.Fields(metrics)}
		out := n.call(operation, in)
		want := m{
			"StreamName": "orders", "StreamARN": ordersARN,
			"CurrentShardLevelMetrics": "[" + current + "]",
			"DesiredShardLevelMetrics": "[" + desired + "]",
		}
		if fmt.Sprint(out) != fmt.Sprint(want) {
			t.Errorf("%s %s answers %v, want %v", operation, metrics, out, want)
		}
		told := "UPDATING [map[ShardLevelMetrics:[" + desired + "]]]"
		if got := n.summary("orders", "StreamStatus", "EnhancedMonitoring"); got != told {
			t.Errorf("the stream is %s, want %s", got, told)
		}
		n.refused(operation, in, codeInUse, "instead in state UPDATING")
		clock.advance(time.Second)
	}
	all := strings.Join(shardMetrics, " ")
	change("EnableEnhancedMonitoring", "OutgoingBytes IncomingBytes OutgoingBytes", "",
		"IncomingBytes OutgoingBytes")
	change("EnableEnhancedMonitoring", "IncomingBytes IncomingRecords",
		"IncomingBytes OutgoingBytes", "IncomingBytes IncomingRecords OutgoingBytes")
	change("DisableEnhancedMonitoring", "IncomingBytes OutgoingRecords",
		"IncomingBytes IncomingRecords OutgoingBytes", "IncomingRecords OutgoingBytes")
	change("EnableEnhancedMonitoring", "ALL IncomingBytes", "IncomingRecords OutgoingBytes", all)
	change("DisableEnhancedMonitoring", "OutgoingBytes", all,
		strings.Replace(all, "OutgoingBytes ", "", 1))
	change("DisableEnhancedMonitoring", "ALL", strings.Replace(all, "OutgoingBytes ", "", 1), "")
}

func TestUpdateMaxRecordSize(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.must(n.EnsureStream(t.Context(), here, "orders", 1))
	record := m{"StreamName": "orders", "PartitionKey": "k", "Data": make([]byte, 2<<20-1)}
	n.refused("PutRecord", record, codeValidation, "less than or equal to 1048576")
	in := m{"StreamARN": ordersARN, "MaxRecordSizeInKiB": 2048}
	n.call("UpdateMaxRecordSize", in)
	if got := n.summary("orders", "StreamStatus", "MaxRecordSizeInKiB"); got != "UPDATING 2048" {
		t.Errorf("the stream is %s", got)
	}
	n.call("PutRecord", record)
	n.refused("UpdateMaxRecordSize", in, codeInUse, "UPDATING")
	clock.advance(time.Second)
	n.call("UpdateMaxRecordSize", in) // as it is: nothing to do
	if got := n.summary("orders", "StreamStatus"); got != "ACTIVE" {
		t.Errorf("the stream is %s", got)
	}
	n.call("UpdateMaxRecordSize", m{"StreamARN": ordersARN, "MaxRecordSizeInKiB": 1024})
	n.refused("PutRecord", record, codeValidation, "less than or equal to 1048576")
	n.refused("UpdateMaxRecordSize", m{"MaxRecordSizeInKiB": 2048}, codeInvalid, "StreamARN")
	n.refused("UpdateMaxRecordSize", m{"StreamARN": ordersARN + "s", "MaxRecordSizeInKiB": 2048},
		codeNotFound, "Stream orderss under account")
}

// The mode changes, the shards stay.
func TestUpdateStreamMode(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.must(n.EnsureStream(t.Context(), here, "orders", 3))
	n.put("orders", "k", "one")
	before := fmt.Sprint(n.list("orders"))
	in := func(mode string) m {
		return m{"StreamARN": ordersARN, "StreamModeDetails": m{"StreamMode": mode}}
	}
	told := func(want string) {
		t.Helper()
		if got := n.summary("orders", "StreamStatus", "StreamModeDetails"); got != want {
			t.Errorf("the stream is %s, want %s", got, want)
		}
		if after := fmt.Sprint(n.list("orders")); after != before {
			t.Errorf("the shards are %s, were %s", after, before)
		}
	}
	n.call("UpdateStreamMode", in("PROVISIONED"))
	told("ACTIVE map[StreamMode:PROVISIONED]")
	n.call("UpdateStreamMode", in("ON_DEMAND"))
	told("UPDATING map[StreamMode:ON_DEMAND]")
	n.refused("UpdateStreamMode", in("PROVISIONED"), codeInUse, "instead in state UPDATING")
	clock.advance(time.Second)
	split := m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"}
	n.refused("SplitShard", split, codeValidation, "")
	n.call("UpdateStreamMode", in("PROVISIONED"))
	clock.advance(time.Second)
	told("ACTIVE map[StreamMode:PROVISIONED]")
	n.call("SplitShard", split)
	listed := n.call("ListStreams", m{})["StreamSummaries"].([]any)[0]
	if got := texts(listed, []string{"StreamStatus", "StreamModeDetails"}); got !=
		"UPDATING map[StreamMode:PROVISIONED]" {
		t.Errorf("ListStreams says %s", got)
	}
}

func TestWarmThroughput(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	onDemand := m{"StreamMode": "ON_DEMAND"}
	n.call("CreateStream", m{"StreamName": "orders", "StreamModeDetails": onDemand})
	n.create("plain", 1)
	set := func(stream string, warm int) m {
		return m{"StreamName": stream, "WarmThroughputMiBps": warm}
	}
	commit := func(status string) {
		n.call("UpdateAccountSettings", m{"MinimumThroughputBillingCommitment": m{"Status": status}})
	}
	told := func(want string) {
		t.Helper()
		if got := n.summary("orders", "WarmThroughput"); got != want {
			t.Errorf("the stream's warm throughput is %s, want %s", got, want)
		}
	}
	const uncommitted = "if MinimumThroughputBillingCommitment is enabled"
	n.refused("UpdateStreamWarmThroughput", set("orders", 100), codeValidation, uncommitted)
	n.refused("CreateStream", m{
		"StreamName": "new", "StreamModeDetails": onDemand, "WarmThroughputMiBps": 100,
	}, codeValidation, uncommitted)
	commit("ENABLED")
	told("<nil>")
	out := n.call("UpdateStreamWarmThroughput", set("orders", 100))
	if got := fmt.Sprint(out); got != "map[StreamARN:"+ordersARN+" StreamName:orders "+
		"WarmThroughput:map[CurrentMiBps:0 TargetMiBps:100]]" {
		t.Errorf("the answer is %s", got)
	}
	told("map[CurrentMiBps:100 TargetMiBps:100]")
	n.refused("UpdateStreamWarmThroughput", set("orders", maxWarm+1), codeLimit, "10240")
	n.refused("UpdateStreamWarmThroughput", set("plain", 100), codeValidation, "ON_DEMAND")
	n.refused("CreateStream", m{"StreamName": "new", "ShardCount": 1, "WarmThroughputMiBps": 1},
		codeValidation, "ON_DEMAND")
	n.refused("UpdateStreamMode", m{
		"StreamARN": ordersARN, "StreamModeDetails": m{"StreamMode": "PROVISIONED"},
		"WarmThroughputMiBps": 100,
	}, codeValidation, "ON_DEMAND")
	n.call("CreateStream", m{
		"StreamName": "new", "StreamModeDetails": onDemand, "WarmThroughputMiBps": 7,
	})
	if got := n.summary("new", "WarmThroughput"); got != "map[CurrentMiBps:7 TargetMiBps:7]" {
		t.Errorf("the new stream's warm throughput is %s", got)
	}
	n.call("UpdateStreamMode", m{
		"StreamARN": ordersARN, "StreamModeDetails": onDemand, "WarmThroughputMiBps": 200,
	})
	told("map[CurrentMiBps:200 TargetMiBps:200]")
	clock.advance(24 * time.Hour)
	commit("DISABLED")
	told("<nil>")
	commit("ENABLED")
	told("map[CurrentMiBps:200 TargetMiBps:200]")
	n.call("UpdateStreamMode",
		m{"StreamARN": ordersARN, "StreamModeDetails": m{"StreamMode": "PROVISIONED"}})
	n.call("UpdateStreamMode", m{"StreamARN": ordersARN, "StreamModeDetails": onDemand})
	told("<nil>")
}

func TestDeleteStreamWithConsumers(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.call("RegisterStreamConsumer", m{"StreamARN": ordersARN, "ConsumerName": "reader"})
	if got := n.summary("orders", "ConsumerCount"); got != "1" {
		t.Errorf("there are %s consumers", got)
	}
	for _, in := range []m{
		{"StreamName": "orders"}, {"StreamName": "orders", "EnforceConsumerDeletion": false},
	} {
		n.refused("DeleteStream", in, codeInUse, "DeleteStream can't delete 000000000000:orders "+
			"because there are consumers associated with this data stream. To delete orders anyway, "+
			"set the EnforceConsumerDeletion parameter to true")
	}
	n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
	n.create("orders", 1)
	n.call("DeleteStream", m{"StreamName": "orders"})
}
