package fault

// operations are the operations that the server answers, of all its services: a rule about any
// other would never fire. A test of package server compares them with its services.
var operations = []string{
	// Kinesis
	"AddTagsToStream", "CreateStream", "DecreaseStreamRetentionPeriod", "DeleteResourcePolicy",
	"DeleteStream", "DeregisterStreamConsumer", "DescribeAccountSettings", "DescribeLimits",
	"DescribeStream", "DescribeStreamConsumer", "DescribeStreamSummary",
	"DisableEnhancedMonitoring", "EnableEnhancedMonitoring", "GetRecords", "GetResourcePolicy",
	"GetShardIterator", "IncreaseStreamRetentionPeriod", "ListShards", "ListStreamConsumers",
	"ListStreams", "ListTagsForResource", "ListTagsForStream", "MergeShards", "PutRecord",
	"PutRecords", "PutResourcePolicy", "RegisterStreamConsumer", "RemoveTagsFromStream",
	"SplitShard", "StartStreamEncryption", "StopStreamEncryption", "SubscribeToShard",
	"TagResource", "UntagResource", "UpdateAccountSettings", "UpdateMaxRecordSize",
	"UpdateShardCount", "UpdateStreamMode", "UpdateStreamWarmThroughput",
	// DynamoDB
	"CreateTable", "DeleteItem", "DeleteTable", "DescribeContinuousBackups", "DescribeTable",
	"GetItem", "ListTables", "PutItem", "Query", "Scan", "TransactWriteItems",
	"UpdateContinuousBackups", "UpdateItem", "UpdateTable",
	// CloudWatch and STS
	"PutMetricData", "GetCallerIdentity",
}

// Operations returns the names of all operations that a rule can be about. The caller must not
// change it.
func Operations() []string { return operations }
