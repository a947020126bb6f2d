package kinesis

import "github.com/runnel-stream/runnel/internal/awswire"

// operations is every operation that is served.
var operations = map[string]operation{
	"CreateStream":                  handle[createStreamInput]((*Service).createStream),
	"DecreaseStreamRetentionPeriod": handle[retentionInput]((*Service).decreaseRetention),
	"DeleteStream":                  handle[deleteStreamInput]((*Service).deleteStream),
	"DescribeStream":                handle[describeStreamInput]((*Service).describeStream),
	"DescribeStreamSummary":         handle[describeSummaryInput]((*Service).describeStreamSummary),
	"GetRecords":                    handle[getRecordsInput]((*Service).getRecords),
	"GetShardIterator":              handle[getShardIteratorInput]((*Service).getShardIterator),
	"IncreaseStreamRetentionPeriod": handle[retentionInput]((*Service).increaseRetention),
	"ListShards":                    handle[listShardsInput]((*Service).listShards),
	"ListStreams":                   handle[listStreamsInput]((*Service).listStreams),
	"MergeShards":                   handle[mergeShardsInput]((*Service).mergeShards),
	"PutRecord":                     handle[putRecordInput]((*Service).putRecord),
	"PutRecords":                    handle[putRecordsInput]((*Service).putRecords),
	"SplitShard":                    handle[splitShardInput]((*Service).splitShard),
}

// unsupported is the rest of the API (service model of 2013-12-02, 39 operations).
var unsupported = map[string]bool{
	"AddTagsToStream":            true,
	"DeleteResourcePolicy":       true,
	"DeregisterStreamConsumer":   true,
	"DescribeAccountSettings":    true,
	"DescribeLimits":             true,
	"DescribeStreamConsumer":     true,
	"DisableEnhancedMonitoring":  true,
	"EnableEnhancedMonitoring":   true,
	"GetResourcePolicy":          true,
	"ListStreamConsumers":        true,
	"ListTagsForResource":        true,
	"ListTagsForStream":          true,
	"PutResourcePolicy":          true,
	"RegisterStreamConsumer":     true,
	"RemoveTagsFromStream":       true,
	"StartStreamEncryption":      true,
	"StopStreamEncryption":       true,
	"SubscribeToShard":           true,
	"TagResource":                true,
	"UntagResource":              true,
	"UpdateAccountSettings":      true,
	"UpdateMaxRecordSize":        true,
	"UpdateShardCount":           true,
	"UpdateStreamMode":           true,
	"UpdateStreamWarmThroughput": true,
}

func unknownOperation(name string) *awswire.Error {
	if unsupported[name] {
		return fail(codeUnsupported, "The operation %s is not supported by this version of runnel.",
			name)
	}
	return &awswire.Error{Code: codeUnknown}
}
