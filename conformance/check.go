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

// check is a running check: the kit and the assertions. A failed assertion ends the check.
type check struct {
	*kit
	ctx context.Context //nolint:containedctx // a check is one call, and this is its argument
}

// These panic values end a check early; fact.run recovers them.
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

// call makes a call and accepts any answer.
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

// refused makes a call that must fail with that code, and with that message unless it is "".
func (c *check) refused(op string, in object, code, message string) {
	c.isError(c.call(op, in), code, message)
}

// isError checks that an answer is a 400 with that code, and that message unless it is "".
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

// isRefusal checks that a request was refused as invalid. No source says which of the two codes
// AWS uses.
func (c *check) isRefusal(a *answer) {
	c.want(a.status == 400 && (a.code() == "ValidationException" ||
		a.code() == "InvalidArgumentException"),
		"400 ValidationException or InvalidArgumentException", a.String())
}

// enumSet matches the list of an enum's values in a message. Its order is that of an AWS hash
// table.
var enumSet = regexp.MustCompile(`enum value set: \[([^\]]*)\]`)

// sameMessage compares two error texts, without regard to the order of violations and of enum
// values: AWS lists them in the order of its hash tables.
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

// run runs a fact's check and returns its result. Any other panic is a mistake in the fact: the
// fact is then in error, and the run goes on.
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
			// A member of the answer is missing or has another type.
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
