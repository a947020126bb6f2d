package kinesis

// operations is every operation of the API (service model of 2013-12-02).
var operations = map[string]operation{
	"AddTagsToStream":               handle[addTagsInput]((*Service).addTagsToStream),
	"CreateStream":                  handle[createStreamInput]((*Service).createStream),
	"DecreaseStreamRetentionPeriod": handle[retentionInput]((*Service).decreaseRetention),
	"DeleteResourcePolicy":          handle[resourcePolicyInput]((*Service).deleteResourcePolicy),
	"DeleteStream":                  handle[deleteStreamInput]((*Service).deleteStream),
	"DeregisterStreamConsumer":      handle[deregisterConsumerInput]((*Service).deregisterConsumer),
	"DescribeAccountSettings":       handle[noMembers]((*Service).describeAccountSettings),
	"DescribeLimits":                handle[noMembers]((*Service).describeLimits),
	"DescribeStream":                handle[describeStreamInput]((*Service).describeStream),
	"DescribeStreamConsumer":        handle[describeConsumerInput]((*Service).describeConsumer),
	"DescribeStreamSummary":         handle[describeSummaryInput]((*Service).describeStreamSummary),
	"DisableEnhancedMonitoring":     handle[monitoringInput]((*Service).disableEnhancedMonitoring),
	"EnableEnhancedMonitoring":      handle[monitoringInput]((*Service).enableEnhancedMonitoring),
	"GetRecords":                    handle[getRecordsInput]((*Service).getRecords),
	"GetResourcePolicy":             handle[resourcePolicyInput]((*Service).getResourcePolicy),
	"GetShardIterator":              handle[getShardIteratorInput]((*Service).getShardIterator),
	"IncreaseStreamRetentionPeriod": handle[retentionInput]((*Service).increaseRetention),
	"ListShards":                    handle[listShardsInput]((*Service).listShards),
	"ListStreamConsumers":           handle[listConsumersInput]((*Service).listConsumers),
	"ListStreams":                   handle[listStreamsInput]((*Service).listStreams),
	"ListTagsForResource":           handle[resourceTagsInput]((*Service).listTagsForResource),
	"ListTagsForStream":             handle[listTagsInput]((*Service).listTagsForStream),
	"MergeShards":                   handle[mergeShardsInput]((*Service).mergeShards),
	"PutRecord":                     handle[putRecordInput]((*Service).putRecord),
	"PutRecords":                    handle[putRecordsInput]((*Service).putRecords),
	"PutResourcePolicy":             handle[putResourcePolicyInput]((*Service).putResourcePolicy),
	"RegisterStreamConsumer":        handle[registerConsumerInput]((*Service).registerConsumer),
	"RemoveTagsFromStream":          handle[removeTagsInput]((*Service).removeTagsFromStream),
	"SplitShard":                    handle[splitShardInput]((*Service).splitShard),
	"StartStreamEncryption":         handle[encryptionInput]((*Service).startStreamEncryption),
	"StopStreamEncryption":          handle[encryptionInput]((*Service).stopStreamEncryption),
	"SubscribeToShard":              handle[subscribeToShardInput]((*Service).subscribeToShard),
	"TagResource":                   handle[tagResourceInput]((*Service).tagResource),
	"UntagResource":                 handle[untagResourceInput]((*Service).untagResource),
	"UpdateAccountSettings":         handle[updateAccountInput]((*Service).updateAccountSettings),
	"UpdateMaxRecordSize":           handle[maxRecordSizeInput]((*Service).updateMaxRecordSize),
	"UpdateShardCount":              handle[updateShardCountInput]((*Service).updateShardCount),
	"UpdateStreamMode":              handle[updateStreamModeInput]((*Service).updateStreamMode),
	"UpdateStreamWarmThroughput":    handle[warmThroughputInput]((*Service).updateWarmThroughput),
}

// Serves reports whether the API has an operation.
func Serves(operation string) bool {
	_, ok := operations[operation]
	return ok
}
