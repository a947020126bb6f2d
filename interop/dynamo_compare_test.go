package interop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// pair has the two answers to one request: runnel's and DynamoDB Local's.
type pair struct{ ours, theirs reply }

func (r reply) String() string {
	if r.code == "" {
		return shown(r.body)
	}
	return fmt.Sprintf("%d %s: %s %s", r.status, r.code, r.message, shown(r.body))
}

// same reports whether the answers are equal: status, code and every member. It compares messages
// only if both are about expressions and their effects on items. For faults in other parameters
// DynamoDB Local has its own texts.
func (p pair) same() bool {
	both := ofExpressions.MatchString(p.ours.message) &&
		ofExpressions.MatchString(p.theirs.message)
	return p.ours.status == p.theirs.status && p.ours.code == p.theirs.code &&
		(!both || plain(p.ours.message) == plain(p.theirs.message)) &&
		shown(p.ours.body) == shown(p.theirs.body)
}

var ofExpressions = regexp.MustCompile(`^(Invalid \w+Expression: |The conditional request |` +
	`Value provided in Expression|` + updateFault + `)`)

const updateFault = `The (document path|provided expression) .*|An operand in the update .*|` +
	`Type mismatch for attribute to update|DynamoDB only supports precision .*|Attempting to store more than 38 .*`

// canonical returns the answer in a form that is equal for equal answers. Members without a fixed
// order are sorted; so are items, if sorted is set because the request gives them no order.
func (r reply) canonical(sorted bool) reply {
	r.body, _ = canonical(r.body, sorted).(object)
	return r
}

func canonical(value any, sorted bool) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = canonical(element, sorted)
		}
		return list
	case object:
		next := maps.Clone(v)
		for name, member := range v {
			next[name] = canonical(member, sorted)
			list, isList := next[name].([]any)
			set := name == "SS" || name == "NS" || name == "BS" || name == "ConsumedCapacity"
			if isList && (set || sorted && name == "Items") {
				slices.SortFunc(list, func(a, b any) int { return cmp.Compare(shown(a), shown(b)) })
			}
		}
		return next
	}
	return value
}

// numbersAsServed writes numbers as the service does: without an exponent and without superfluous
// zeros. DynamoDB Local returns the numbers within lists and maps unchanged.
func numbersAsServed(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = numbersAsServed(v[i])
		}
	case object:
		for name, member := range v {
			v[name] = numbersAsServed(member)
			if text, isText := member.(string); isText && name == "N" {
				v[name] = decimal(text)
			}
		}
	}
	return value
}

func decimal(text string) string {
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	plain := number.FloatString(168) // 1E-130 with 38 digits
	return strings.TrimSuffix(strings.TrimRight(plain, "0"), ".")
}

// shown returns a value as JSON with sorted names.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// number returns a number of the answer, such as Count.
func (r reply) number(name string) float64 {
	n, _ := r.body[name].(float64)
	return n
}

// These parts of messages may differ.
var (
	anyUpdate  = regexp.MustCompile(updateFault)
	nearText   = regexp.MustCompile(`(?s)Syntax error; token: .*`)
	bounds     = regexp.MustCompile(`AttributeValue: \{.*\}`)
	typeNames  = regexp.MustCompile(`\{[A-Z]+(,[A-Z]+)+\}`)
	unusedKeys = regexp.MustCompile(`unused in expressions: keys: \{.*\}`)
	secondPath = regexp.MustCompile(`path one: .*`)
)

// plain returns a message without the parts that may differ: the choice among several faults of an
// update; the position of a syntax error; values, which DynamoDB Local prints in Java's form; the
// order of type names; and the choice among overlapping paths.
func plain(message string) string {
	message = anyUpdate.ReplaceAllString(message, "update")
	message = nearText.ReplaceAllString(message, "Syntax error")
	message = bounds.ReplaceAllString(message, "AttributeValue")
	message = unusedKeys.ReplaceAllString(message, "unused")
	message = secondPath.ReplaceAllString(message, "")
	return typeNames.ReplaceAllString(message, "{types}")
}
