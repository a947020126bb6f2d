package awserr

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ConditionFailed reports whether a single write failed because its condition did not hold. It
// returns the item at that time if the call asked for it and the table has it.
func ConditionFailed(err error) (item map[string]types.AttributeValue, failed bool) {
	var condition *types.ConditionalCheckFailedException
	if !errors.As(err, &condition) {
		return nil, false
	}
	return condition.Item, true
}

// TableExists reports whether CreateTable failed because the table exists.
func TableExists(err error) bool { return Code(err) == CodeInUse }

// Raced reports whether a transaction was cancelled because of another write: a condition no longer
// held, or another transaction was at work on an item.
func Raced(err error) bool {
	return slices.ContainsFunc(reasons(err), func(code string) bool {
		class, _ := DynamoDB.OfCode(code, "")
		return code == codeConditionFailed || class == Passing
	})
}

// TransientWrite is DynamoDB.Transient for a transaction too: a cancelled one is transient if one
// of its items was throttled.
func TransientWrite(err error) bool {
	if codes := reasons(err); codes != nil {
		return slices.ContainsFunc(codes, func(code string) bool {
			class, _ := DynamoDB.OfCode(code, "")
			return class == Throttled
		})
	}
	return DynamoDB.Transient(err)
}

// reasons returns the code of each item of a cancelled transaction; nil for any other error.
func reasons(err error) []string {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil
	}
	codes := make([]string, 0, len(cancelled.CancellationReasons))
	for _, reason := range cancelled.CancellationReasons {
		codes = append(codes, aws.ToString(reason.Code))
	}
	return codes
}
