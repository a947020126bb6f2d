package awserr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// cancelled is the error of a transaction with a reason for each of its items.
func cancelled(codes ...string) error {
	err := &types.TransactionCanceledException{}
	for _, code := range codes {
		err.CancellationReasons = append(err.CancellationReasons,
			types.CancellationReason{Code: aws.String(code)})
	}
	return fmt.Errorf("write: %w", err)
}

// A cancelled transaction is judged by the reasons of its items.
func TestTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		err              error
		raced, transient bool
	}{
		"a condition":      {cancelled("None", "ConditionalCheckFailed"), true, false},
		"a conflict":       {cancelled("TransactionConflict", "None"), true, false},
		"an item's limit":  {cancelled("None", "ThrottlingError"), false, true},
		"a table's limit":  {cancelled("ProvisionedThroughputExceeded"), false, true},
		"a large item":     {cancelled("ValidationError", "None"), false, false},
		"no reasons":       {cancelled(), false, false},
		"no answer":        {errors.New("connection reset"), false, true},
		"a throttled call": {answer(400, "ThrottlingException", ""), false, true},
		"no access":        {answer(400, "AccessDeniedException", ""), false, false},
	} {
		if got := awserr.Raced(c.err); got != c.raced {
			t.Errorf("%s: raced is %v", name, got)
		}
		if got := awserr.TransientWrite(c.err); got != c.transient {
			t.Errorf("%s: transient is %v", name, got)
		}
	}
}

// A failed condition comes with the item if the answer has it, also through wrapped errors.
func TestConditionFailed(t *testing.T) {
	item := map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "v"}}
	err := fmt.Errorf("write: %w", &types.ConditionalCheckFailedException{Item: item})
	if got, failed := awserr.ConditionFailed(err); !failed || len(got) != 1 {
		t.Errorf("%v, %v", got, failed)
	}
	for _, other := range []error{nil, errors.New("reset"), answer(400, "ValidationException", "")} {
		if got, failed := awserr.ConditionFailed(other); failed || got != nil {
			t.Errorf("%v counts as a failed condition", other)
		}
	}
}

// Only CreateTable's answer for an existing name counts as one.
func TestTableExists(t *testing.T) {
	if !awserr.TableExists(answer(400, "ResourceInUseException", "")) {
		t.Error("ResourceInUseException is not seen")
	}
	for _, other := range []error{nil, errors.New("reset"), answer(403, "RequestTimeTooSkewed", "")} {
		if awserr.TableExists(other) {
			t.Errorf("%v counts as an existing table", other)
		}
	}
}
