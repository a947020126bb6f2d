package interop

import (
	"regexp"
	"strings"
)

// knownDifference is one that stays, with the reason: mostly that DynamoDB Local is not what the
// service's documentation says, which decides.
type knownDifference struct {
	reason string
	fits   func(q request, p pair) bool
}

var knownDifferences = []knownDifference{
	{
		"DynamoDB Local fails on JSON of another shape than the API's, or takes it for what is " +
			"meant; the service and runnel say that it is not the API's",
		func(_ request, p pair) bool {
			return p.ours.code == "SerializationException" ||
				p.theirs.code == "InternalFailure" && p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local does not check all that the API's model says of a member (its values, " +
			"lengths and ranges), or checks it after the condition",
		func(_ request, p pair) bool {
			return modelFault.MatchString(p.ours.message) && p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local looks at the values of AttributeUpdates after the condition",
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
		"TransactWriteItems is documented to cancel with a ValidationError reason where an item " +
			"cannot be updated, or its key is none; DynamoDB Local refuses the request, or " +
			"looks at the other items' conditions too",
		func(_ request, p pair) bool {
			if p.ours.code != "TransactionCanceledException" {
				return false
			}
			return p.theirs.code == "ValidationException" ||
				strings.Contains(p.ours.message, "ValidationError")
		},
	},
	{
		"DynamoDB Local looks at an item's conditions before it sees that a transaction has it " +
			"twice, or that a path leads into a key, and not at placeholders of no expression",
		func(q request, p pair) bool {
			return q.operation == "TransactWriteItems" && p.ours.code == "ValidationException" &&
				(strings.HasPrefix(p.ours.message, "Transaction request cannot include") ||
					strings.HasPrefix(p.ours.message, "Key attributes must be scalars") ||
					strings.HasPrefix(p.ours.message, "ExpressionAttribute"))
		},
	},
	{
		"DynamoDB Local refuses a starting key at the end of the key conditions' range, which " +
			"the service returns itself where Limit is reached there",
		func(q request, p pair) bool {
			return q.operation == "Query" && p.ours.code == "" && p.ours.number("ScannedCount") == 0 &&
				strings.Contains(p.theirs.message, "does not match the range key predicate")
		},
	},
	{
		"DynamoDB Local looks only after the condition whether an update's paths lead into keys",
		func(q request, p pair) bool {
			return q.operation == "UpdateItem" && p.ours.code == "ValidationException" &&
				keyUpdate.MatchString(p.ours.message) &&
				p.theirs.code == "ConditionalCheckFailedException"
		},
	},
	{
		"DynamoDB Local makes an item of an update that only takes away and finds none; the " +
			"service does not (Alternator's tests, which run against it too)",
		func(q request, p pair) bool {
			return onlyRemoves(q) && p.ours.code == "" && p.theirs.code == "" &&
				p.ours.body["Attributes"] == nil
		},
	},
	{
		"DynamoDB Local looks for the table before some of what is wrong with a request",
		func(_ request, p pair) bool {
			return p.theirs.code == "ResourceNotFoundException" &&
				p.ours.code == "ValidationException"
		},
	},
	{
		"DynamoDB Local takes an empty older parameter beside an expression for none",
		func(q request, p pair) bool {
			return emptyOlder.MatchString(shown(q.body)) &&
				strings.HasPrefix(p.ours.message, "Can not use both")
		},
	},
	{
		"UPDATED_OLD and UPDATED_NEW of DynamoDB Local show whole lists where an update has " +
			"elements, and nested attributes beside its own; the service does not (Alternator's tests)",
		func(q request, p pair) bool {
			text, _ := q.body["UpdateExpression"].(string)
			choice, _ := q.body["ReturnValues"].(string)
			return strings.HasPrefix(choice, "UPDATED") && nestedPath.MatchString(text) &&
				p.ours.code == "" && p.theirs.code == ""
		},
	},
	{
		"DynamoDB Local takes an empty starting key for none",
		func(q request, p pair) bool {
			start, _ := q.body["ExclusiveStartKey"].(object)
			return start != nil && len(start) == 0 && p.theirs.code == ""
		},
	},
}

// knownState reports whether a difference between what a request left is a known one: the items
// that onlyRemoves is about, which have nothing but their keys.
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

// onlyRemoves reports whether an update of the request only takes away.
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
