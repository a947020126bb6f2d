package fault

// operations lists the operations of all services that the server answers. A rule about any other
// would never fire. A test of package server compares the list with the services.
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

// Operations returns the names of the operations for which rules are possible. The caller must
// not change the slice.
func Operations() []string { return operations }
