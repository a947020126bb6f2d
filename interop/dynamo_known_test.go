package interop

import (
	"regexp"
	"strings"
)

// knownDifference is a permitted difference with its reason. In most cases DynamoDB Local differs
// from the service's documentation, which decides.
type knownDifference struct {
	reason string
	fits   func(q request, p pair) bool
}

var knownDifferences = []knownDifference{
	{
		"DynamoDB Local fails on JSON of another shape than the API's, or guesses its meaning; " +
			"the service and runnel refuse it as invalid",
		func(_ request, p pair) bool {
			return p.ours.code == "SerializationException" ||
				p.theirs.code == "InternalFailure" && p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local does not check all constraints of the API's model (values, lengths and " +
			"ranges), or checks them after the condition",
		func(_ request, p pair) bool {
			return modelFault.MatchString(p.ours.message) && p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local checks the values of AttributeUpdates after the condition",
		func(q request, p pair) bool {
			return q.body["AttributeUpdates"] != nil && p.ours.code == "ValidationException" &&
				p.theirs.code == "ConditionalCheckFailedException"
		},
	},
	{
		"DynamoDB Local lets some updates give an index's key another type: ADD of " +
			"AttributeUpdates, and SET to a value in parentheses",
		func(q request, p pair) bool {
			return q.operation == "UpdateItem" && p.theirs.code == "" &&
				strings.Contains(p.ours.message, "Type mismatch for Index Key")
		},
	},
	{
		"by its documentation TransactWriteItems cancels with a ValidationError reason if an item " +
			"cannot be updated or its key is invalid; DynamoDB Local refuses the request, or " +
			"checks the other items' conditions too",
		func(_ request, p pair) bool {
			if p.ours.code != "TransactionCanceledException" {
				return false
			}
			return p.theirs.code == "ValidationException" ||
				strings.Contains(p.ours.message, "ValidationError")
		},
	},
	{
		"DynamoDB Local checks an item's conditions before it finds an item twice in a " +
			"transaction, or a path into a key; it ignores unused placeholders",
		func(q request, p pair) bool {
			return q.operation == "TransactWriteItems" && p.ours.code == "ValidationException" &&
				(strings.HasPrefix(p.ours.message, "Transaction request cannot include") ||
					strings.HasPrefix(p.ours.message, "Key attributes must be scalars") ||
					strings.HasPrefix(p.ours.message, "ExpressionAttribute"))
		},
	},
	{
		"DynamoDB Local refuses a starting key at the end of the key conditions' range; the " +
			"service itself returns such a key if Limit is reached there",
		func(q request, p pair) bool {
			return q.operation == "Query" && p.ours.code == "" && p.ours.number("ScannedCount") == 0 &&
				strings.Contains(p.theirs.message, "does not match the range key predicate")
		},
	},
	{
		"DynamoDB Local finds an update's paths into keys only after the condition",
		func(q request, p pair) bool {
			return q.operation == "UpdateItem" && p.ours.code == "ValidationException" &&
				keyUpdate.MatchString(p.ours.message) &&
				p.theirs.code == "ConditionalCheckFailedException"
		},
	},
	{
		"DynamoDB Local makes an item for an update that only removes and finds no item; the " +
			"service does not (Alternator's tests, which run against it too)",
		func(q request, p pair) bool {
			return onlyRemoves(q) && p.ours.code == "" && p.theirs.code == "" &&
				p.ours.body["Attributes"] == nil
		},
	},
	{
		"DynamoDB Local looks for the table before it finds some faults of a request",
		func(_ request, p pair) bool {
			return p.theirs.code == "ResourceNotFoundException" &&
				p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local ignores an empty legacy parameter beside an expression",
		func(q request, p pair) bool {
			return emptyOlder.MatchString(shown(q.body)) &&
				strings.HasPrefix(p.ours.message, "Can not use both")
		},
	},
	{
		"UPDATED_OLD and UPDATED_NEW of DynamoDB Local show whole lists for an update of " +
			"elements, and nested attributes besides the updated ones; the service does not " +
			"(Alternator's tests)",
		func(q request, p pair) bool {
			text, _ := q.body["UpdateExpression"].(string)
			choice, _ := q.body["ReturnValues"].(string)
			return strings.HasPrefix(choice, "UPDATED") && nestedPath.MatchString(text) &&
				p.ours.code == "" && p.theirs.code == ""
		},
	},
	{
		"DynamoDB Local ignores an empty starting key",
		func(q request, p pair) bool {
			start, _ := q.body["ExclusiveStartKey"].(object)
			return start != nil && len(start) == 0 && p.theirs.code == ""
		},
	},
}

// knownState reports whether a difference between the items after a request is a known one: after a
// request of onlyRemoves DynamoDB Local may have additional items with nothing but their keys.
func knownState(q request, left pair) bool {
	if !onlyRemoves(q) {
		return false
	}
	both := left.items()
	ours := map[string]bool{}
	for _, item := range both[0] {
		ours[shown(item)] = true
	}
	same := 0
	for _, item := range both[1] {
		switch {
		case ours[shown(item)]:
			same++
		case len(item) > 2:
			return false
		}
	}
	return same == len(ours)
}

var emptyOlder = regexp.MustCompile(`"(Expected|ScanFilter|QueryFilter)":\{\}`)

var nestedPath = regexp.MustCompile(`\.|\[`)

var keyUpdate = regexp.MustCompile(
	`^Key attributes must be scalars|: Cannot update attribute \w+. This attribute is part of the key$`)

// onlyRemoves reports whether an update of the request only removes attributes or elements.
func onlyRemoves(q request) bool {
	list, _ := q.body["TransactItems"].([]any)
	for _, one := range list {
		item, _ := one.(object)
		update, _ := item["Update"].(object)
		if update != nil && onlyRemoves(request{body: update}) {
			return true
		}
	}
	if text, found := q.body["UpdateExpression"].(string); found {
		return !assigns.MatchString(text)
	}
	updates, _ := q.body["AttributeUpdates"].(object)
	for _, one := range updates {
		update, _ := one.(object)
		if update["Action"] != "DELETE" {
			return false
		}
	}
	return len(updates) > 0
}

var assigns = regexp.MustCompile(`(?i)\b(SET|ADD) `)

var modelFault = regexp.MustCompile(`^\d+ validation errors? detected: `)

// known reports whether a difference is a known one.
func known(q request, p pair) bool {
	for _, k := range knownDifferences {
		if k.fits(q, p) {
			return true
		}
	}
	return false
}
