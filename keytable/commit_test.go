package keytable

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
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

func TestFailedTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		err              error
		raced, retryable bool
	}{
		"a condition":      {cancelled("None", "ConditionalCheckFailed"), true, false},
		"a conflict":       {cancelled("TransactionConflict", "None"), true, false},
		"an item's limit":  {cancelled("None", "ThrottlingError"), false, true},
		"a table's limit":  {cancelled("ProvisionedThroughputExceeded"), false, true},
		"a large item":     {cancelled("ValidationError", "None"), false, false},
		"no reasons":       {cancelled(), false, false},
		"no answer":        {errors.New("connection reset"), false, true},
		"a throttled call": {&smithy.GenericAPIError{Code: "ThrottlingException"}, false, true},
		"no access":        {&smithy.GenericAPIError{Code: "AccessDeniedException"}, false, false},
		"a damaged table":  {ErrDamagedTable, false, false},
	} {
		if got := raced(c.err); got != c.raced {
			t.Errorf("%s: raced is %v", name, got)
		}
		if got := retryable(c.err); got != c.retryable {
			t.Errorf("%s: retryable is %v", name, got)
		}
	}
}
