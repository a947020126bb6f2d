package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/spell"
)

// ErrSpec is wrapped by every error of Parse.
var ErrSpec = errors.New("bad fault specification")

const (
	maxDuration = 24 * time.Hour
	maxRules    = 1000
	maxRecords  = 500 // of a PutRecords call
	// maxStreamName is the API's own limit.
	maxStreamName = 128
	maxCode       = 100
)

// Parse reads a specification in the language of the package comment. An empty one gives a plan
// without faults. An error names the wrong rule and wraps ErrSpec.
func Parse(spec string) (*Plan, error) {
	plan := &Plan{}
	words := strings.FieldsFunc(spec, func(r rune) bool {
		return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
	if len(words) > maxRules {
		return nil, fmt.Errorf("%w: more than %d rules", ErrSpec, maxRules)
	}
	seeds := 0
	for _, word := range words {
		if strings.HasPrefix(word, "seed=") {
			seeds++
		}
		err := plan.add(word)
		if seeds > 1 {
			err = errors.New("the seed is set twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: rule %q: %w", ErrSpec, word, err)
		}
	}
	return plan, nil
}

func (p *Plan) add(word string) error {
	if number, ok := strings.CutPrefix(word, "seed="); ok {
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("the seed must be a number from 0 to %d", forever)
		}
		p.seed = seed
		return nil
	}
	calls, fault, ok := strings.Cut(word, ":")
	if !ok {
		return errors.New("it must read OPERATION:FAULT, as PutRecords:lose-answer@3")
	}
	r := rule{calls: calls}
	var err error
	if fault, r.when, err = parseWhen(fault); err != nil {
		return err
	}
	name, argument, given := strings.Cut(fault, "=")
	if r.kind, ok = kindOf(name); !ok {
		return fmt.Errorf("unknown fault %q%s; there are: %s", name,
			spell.DidYouMean(name, kindNames()), strings.Join(kindNames(), ", "))
	}
	if err := r.checkCalls(); err != nil {
		return err
	}
	if err := r.setArgument(argument, given); err != nil {
		return err
	}
	if only := kinds[r.kind].operation; only != "" && !r.about("kinesis", only) {
		return fmt.Errorf("%s applies to %s only", name, only)
	}
	p.rules = append(p.rules, r)
	return nil
}

func (r *rule) checkCalls() error {
	calls := r.calls
	if r.kind == kindReshard {
		return checkStream(calls)
	}
	switch calls {
	case "*", "kinesis.*", "dynamodb.*":
		return nil
	}
	if calls == "" {
		return errors.New("the operation is missing; * means every one")
	}
	for _, operation := range operations {
		if strings.EqualFold(operation, calls) {
			return nil
		}
	}
	names := append([]string{"*", "kinesis.*", "dynamodb.*"}, operations...)
	return fmt.Errorf("%q is no operation of the server%s; there are: %s", calls,
		spell.DidYouMean(calls, names), strings.Join(names, ", "))
}

// checkStream checks the stream of a reshard rule: a valid name of the API, or *.
func checkStream(name string) error {
	if name == "*" {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return fmt.Errorf("%q is not the name of a stream, nor *", name)
		}
	}
	if name == "" || len(name) > maxStreamName {
		return errors.New("the stream's name is missing or too long; * means every stream")
	}
	return nil
}

func parseWhen(fault string) (rest string, w when, err error) {
	w = when{from: 1, to: forever}
	at := strings.IndexAny(fault, "@%")
	if at < 0 {
		return fault, w, nil
	}
	rest, text := fault[:at], fault[at+1:]
	if fault[at] == '%' {
		percent, err := strconv.ParseFloat(text, 64)
		if err == nil && percent > 0 && percent <= 100 { // false for NaN
			return rest, when{percent: percent}, nil
		}
		return "", w, fmt.Errorf("%%%s is not a chance above 0 and up to 100 %%", text)
	}
	first, last, isRange := strings.Cut(text, "-")
	first, open := strings.CutSuffix(first, "+")
	if w.from, err = strconv.ParseUint(first, 10, 63); err != nil || w.from == 0 {
		return "", w, fmt.Errorf("@%s is not @N, @N-M or @N+; calls count from 1", text)
	}
	switch {
	case isRange && !open:
		w.to, err = strconv.ParseUint(last, 10, 63)
		if err != nil || w.to < w.from {
			return "", w, fmt.Errorf("@%s is not a range of calls @N-M", text)
		}
	case isRange:
		return "", w, fmt.Errorf("@%s is both a range and open", text)
	case !open:
		w.to = w.from
	}
	return rest, w, nil
}

func (r *rule) setArgument(text string, given bool) error {
	switch kinds[r.kind].argument {
	case argumentMoment:
		if !given {
			return nil
		}
		fallthrough
	case argumentDuration:
		duration, err := time.ParseDuration(text)
		if err != nil || duration <= 0 || duration > maxDuration {
			return fmt.Errorf("%s needs a duration above 0 and up to %v, as %[1]s=2s",
				r.kind, maxDuration)
		}
		r.duration = duration
	case argumentRecord:
		if given {
			return r.record.set(text)
		}
	case argumentCode:
		if !isCode(text) {
			return fmt.Errorf("%s needs the code of an error, as %[1]s=AccessDeniedException",
				r.kind)
		}
		r.code = text
	case argumentNone:
		if given {
			return fmt.Errorf("%s takes no argument", r.kind)
		}
	}
	return nil
}

// isCode reports whether a text can be the code of an API's error.
func isCode(text string) bool {
	for i := range len(text) {
		if c := text[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return text != "" && len(text) <= maxCode
}

func (r *record) set(text string) error {
	first, second, chance := strings.Cut(text, "/")
	number, err := strconv.Atoi(first)
	if err != nil || number < 1 || number > maxRecords {
		return fmt.Errorf("%q is not a record from 1 to %d, nor a chance a/b", text, maxRecords)
	}
	if !chance {
		r.number = number
		return nil
	}
	den, err := strconv.Atoi(second)
	if err != nil || den < number || den > 1_000_000 {
		return fmt.Errorf("%q is not a chance a/b with a <= b <= 1000000", text)
	}
	r.num, r.den = number, den
	return nil
}
