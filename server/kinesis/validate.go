package kinesis

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// input is a request's members. validate lists the constraints of the model that they break;
// what depends on a stream's state is checked by the operation.
type input[In any] interface {
	*In
	validate(v *violations)
}

// violations collects the broken constraints of a request, worded as AWS does.
type violations struct {
	texts []string
	other *awswire.Error // an error of another kind, answered if no constraint is broken
}

// maxViolations is how many AWS lists.
const maxViolations = 10

// maxEcho bounds what is repeated of a wrong value.
const maxEcho = 2048

func (v *violations) err() error {
	switch {
	case len(v.texts) > 0:
		plural := "s"
		if len(v.texts) == 1 {
			plural = ""
		}
		return fail(codeValidation, "%d validation error%s detected: %s",
			len(v.texts), plural, strings.Join(v.texts, "; "))
	case v.other != nil:
		return v.other
	default:
		return nil
	}
}

// fail notes an error that is not about a constraint of the model; the first one counts.
func (v *violations) fail(err *awswire.Error) {
	if v.other == nil {
		v.other = err
	}
}

func (v *violations) add(member, value, constraint string) {
	if len(v.texts) >= maxViolations {
		return
	}
	if len(value) > maxEcho {
		value = strings.ToValidUTF8(value[:maxEcho], "") + "…"
	}
	v.texts = append(v.texts, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: %s",
		value, member, constraint))
}

// missing notes that a required member is not there.
func (v *violations) missing(member string) {
	if len(v.texts) < maxViolations {
		v.texts = append(v.texts, "Value null at '"+member+
			"' failed to satisfy constraint: Member must not be null")
	}
}

// textRule is the constraint of a text: its length in characters, and its pattern or its
// values.
type textRule struct {
	min, max int
	pattern  string
	matches  func(string) bool // nil: any text
	values   []string          // nil: any
}

// The model's texts (service model of 2013-12-02).
var (
	nameRule = textRule{min: 1, max: 128, pattern: `[a-zA-Z0-9_.-]+`, matches: isName}
	arnRule  = textRule{
		min: 1, max: 2048, pattern: arnPattern,
		matches: regexp.MustCompile("^(?:" + arnPattern + ")$").MatchString,
	}
	hashKeyRule = textRule{
		max: 1 << 20, pattern: `0|([1-9]\d{0,38})`,
		matches: func(s string) bool { return isDecimal(s, 39) },
	}
	numberRule = textRule{
		max: 1 << 20, pattern: `0|([1-9]\d{0,128})`,
		matches: func(s string) bool { return isDecimal(s, 129) },
	}
	partitionKeyRule = textRule{min: 1, max: 256}
	iteratorRule     = textRule{min: 1, max: 512}
	nextTokenRule    = textRule{min: 1, max: 1_048_576}
	tagKeyRule       = textRule{min: 1, max: 128}
	tagValueRule     = textRule{max: 256}
	modeRule         = textRule{max: 1 << 20, values: []string{modeProvisioned, modeOnDemand}}
)

const arnPattern = `arn:aws.*:kinesis:.*:\d{12}:stream/\S+`

// isName reports whether s has only the characters of a name.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

// isDecimal reports whether s is a decimal integer of at most that many digits, without leading
// zeros.
func isDecimal(s string, digits int) bool {
	if s == "" || len(s) > digits || (s[0] == '0' && len(s) > 1) {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// required and optional check a text.
func (v *violations) required(member string, value *string, rule textRule) {
	if value == nil {
		v.missing(member)
		return
	}
	v.optional(member, value, rule)
}

func (v *violations) optional(member string, value *string, rule textRule) {
	if value == nil {
		return
	}
	if rule.matches != nil && !rule.matches(*value) {
		v.add(member, *value, "Member must satisfy regular expression pattern: "+rule.pattern)
	}
	if len(*value) < rule.min { // min is 0 or 1: bytes are as good as characters
		v.add(member, *value,
			fmt.Sprint("Member must have length greater than or equal to ", rule.min))
	}
	if len(*value) > rule.max && utf8.RuneCountInString(*value) > rule.max {
		v.add(member, *value,
			fmt.Sprint("Member must have length less than or equal to ", rule.max))
	}
	if rule.values == nil {
		return
	}
	for _, allowed := range rule.values {
		if *value == allowed {
			return
		}
	}
	v.add(member, *value,
		"Member must satisfy enum value set: ["+strings.Join(rule.values, ", ")+"]")
}

// number checks an optional number in [low, high].
func (v *violations) number(member string, value *integer, low, high integer) {
	if value == nil {
		return
	}
	text := strconv.FormatInt(int64(*value), 10)
	if *value < low {
		v.add(member, text, fmt.Sprint("Member must have value greater than or equal to ", low))
	}
	if *value > high {
		v.add(member, text, fmt.Sprint("Member must have value less than or equal to ", high))
	}
}

// blob checks a length in bytes.
func (v *violations) blob(member string, length, limit int) {
	if length > limit {
		v.add(member, fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", length, length),
			fmt.Sprint("Member must have length less than or equal to ", limit))
	}
}
