package wire

import "strings"

// The services, as Call.Service names them.
const (
	Kinesis  = "kinesis"
	DynamoDB = "dynamodb"
	// CloudWatch and STS have the names that the scopes of signatures use.
	CloudWatch = "monitoring"
	STS        = "sts"
)

// ParseTarget reads an X-Amz-Target header, as "Kinesis_20131202.PutRecords". ok is false for an
// unknown service.
func ParseTarget(target string) (service, operation string, ok bool) {
	prefix, operation, ok := strings.Cut(target, ".")
	if !ok || operation == "" {
		return "", "", false
	}
	switch prefix {
	case "Kinesis_20131202":
		return Kinesis, operation, true
	case "DynamoDB_20120810":
		return DynamoDB, operation, true
	case granite:
		return CloudWatch, operation, true
	default:
		return "", "", false
	}
}

// Streams reports whether the answers to a target's calls are event streams.
func Streams(target string) bool {
	service, operation, _ := ParseTarget(target)
	return service == Kinesis && operation == "SubscribeToShard"
}
