package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// check is a running check: the kit, and the ways to find fault. The methods that find fault
// end the check.
type check struct {
	*kit
	ctx context.Context //nolint:containedctx // a check is one call, and this is its argument
}

// What ends a check early, as a panic that the runner takes.
type (
	differs struct{ expected, got string }
	skipped struct{ reason string }
	broken  struct{ err error }
)

// want ends the check unless ok.
func (c *check) want(ok bool, expected string, got any) {
	if !ok {
		panic(differs{expected, show(got)})
	}
}

// equal ends the check unless the two print alike.
func (c *check) equal(what string, got, want any) {
	c.want(show(got) == show(want), what+" "+show(want), got)
}

// matches ends the check unless the text matches.
func (c *check) matches(what, got, pattern string) {
	c.want(regexp.MustCompile(pattern).MatchString(got), what+" like "+pattern, got)
}

// members ends the check unless the object has these members and no others.
func (c *check) members(o object, names ...string) {
	var got []string
	for name := range o {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(names)
	c.want(slices.Equal(got, names), "the members "+strings.Join(names, ", "),
		strings.Join(got, ", "))
}

// contains ends the check unless the object has these members, and perhaps others.
func (c *check) contains(o object, names ...string) {
	for _, name := range names {
		c.want(o.has(name), "a member "+name, o)
	}
}

// skip ends the check with no verdict.
func (c *check) skip(reason string) { panic(skipped{reason}) }

// call makes a call whose answer may be anything.
func (c *check) call(op string, in object) *answer {
	return c.must(c.kit.call(c.ctx, op, in))
}

// send makes a request by hand.
func (c *check) send(r request) *answer { return c.must(c.kit.send(c.ctx, r)) }

func (c *check) must(a *answer, err error) *answer {
	if err != nil {
		panic(broken{err})
	}
	return a
}

// ok makes a call that must succeed, and returns its answer.
func (c *check) ok(op string, in object) object {
	return c.succeeded(op, c.call(op, in))
}

// succeeded returns the answer of a call that must have succeeded.
func (c *check) succeeded(op string, a *answer) object {
	c.want(a.status == 200, op+" succeeds", a.String())
	return a.value
}

// refused makes a call that must fail with that code, and that text unless it is "".
func (c *check) refused(op string, in object, code, message string) {
	c.isError(c.call(op, in), code, message)
}

// isError checks a failure.
func (c *check) isError(a *answer, code, message string) {
	expected := "400 " + code
	if message != "" {
		expected += ": " + message
	}
	c.want(a.status == 400 && a.code() == code, expected, a.String())
	if message != "" {
		c.want(sameMessage(a.message(), message), expected, a.String())
	}
}

// isRefusal checks that a request was refused as a bad one, where nobody says by which of the
// two codes.
func (c *check) isRefusal(a *answer) {
	c.want(a.status == 400 && (a.code() == "ValidationException" ||
		a.code() == "InvalidArgumentException"),
		"400 ValidationException or InvalidArgumentException", a.String())
}

// enumSet is the list that a message gives of an enum, in the order of a hash table of AWS's.
var enumSet = regexp.MustCompile(`enum value set: \[([^\]]*)\]`)

// sameMessage compares two error texts. The order of several violations, and of an enum's
// values, is that of AWS's hash tables and no part of the fact.
func sameMessage(a, b string) bool { return normalMessage(a) == normalMessage(b) }

func normalMessage(s string) string {
	s = enumSet.ReplaceAllStringFunc(s, func(set string) string {
		values := strings.Split(enumSet.FindStringSubmatch(set)[1], ", ")
		slices.Sort(values)
		return "enum value set: [" + strings.Join(values, ", ") + "]"
	})
	head, rest, several := strings.Cut(s, " detected: ")
	if !several {
		return s
	}
	violations := strings.Split(rest, "; ")
	slices.Sort(violations)
	return head + " detected: " + strings.Join(violations, "; ")
}

// run runs a fact's check and returns its result. A check that panics otherwise is a mistake of
// the fact's, and told as such rather than ending the run.
func (f fact) run(ctx context.Context, k *kit) (r result) {
	r = result{fact: f, outcome: outcomeOK}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case differs:
			r.outcome, r.expected, r.got = outcomeDiffers, v.expected, v.got
		case skipped:
			r.outcome, r.reason = outcomeSkipped, v.reason
		case broken:
			r.outcome, r.reason = outcomeError, v.err.Error()
			var dial *net.OpError
			r.unreachable = errors.As(v.err, &dial) && dial.Op == "dial"
		case runtime.Error:
			// Something is not where an answer of the API has it.
			r.outcome = outcomeDiffers
			r.expected, r.got = "an answer of the documented form", v.Error()
		default:
			r.outcome, r.reason = outcomeError, fmt.Sprintf("the check itself failed: %v", v)
		}
	}()
	if reason := k.cannot(f.needs); reason != "" {
		r.outcome, r.reason = outcomeSkipped, reason
		return r
	}
	f.check(&check{kit: k, ctx: ctx})
	return r
}
