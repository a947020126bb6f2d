package main

import "encoding/json"

const (
	getPolicy    = "GetResourcePolicy"
	putPolicy    = "PutResourcePolicy"
	deletePolicy = "DeleteResourcePolicy"
)

// policyScene has the answers of the policy operations, in that order.
type policyScene struct {
	none     *answer
	policy   object
	put, got *answer
	deleted  *answer
	again    *answer // of GetResourcePolicy
}

func (c *check) policied() policyScene {
	return stage(c, "policy", func(c *check) (s policyScene) {
		arn, account := c.settings().arn, c.main().account
		defer c.alone()()
		s.none = c.call(getPolicy, object{"ResourceARN": arn})
		s.policy = object{"Version": "2012-10-17", "Statement": []any{object{
			"Sid": "conformance", "Effect": "Allow",
			"Principal": object{"AWS": "arn:aws:iam::" + account + ":root"},
			"Action":    []any{"kinesis:DescribeStreamSummary", "kinesis:ListShards"},
			"Resource":  arn,
		}}}
		text, err := json.Marshal(s.policy)
		if err != nil {
			panic(broken{err})
		}
		s.put = c.call(putPolicy, object{"ResourceARN": arn, "Policy": string(text)})
		s.got = c.call(getPolicy, object{"ResourceARN": arn})
		s.deleted = c.call(deletePolicy, object{"ResourceARN": arn})
		s.again = c.call(getPolicy, object{"ResourceARN": arn})
		return s
	})
}

func policyFacts() []fact {
	return []fact{
		{
			"get-resource-policy/none", getPolicy, "A resource without a policy has the policy {}.",
			seenBy("LocalStack's snapshot of GetResourcePolicy"), nothing, func(c *check) {
				a := c.succeeded(getPolicy, c.policied().none)
				c.members(a, "Policy")
				c.equal("Policy", a.text("Policy"), "{}")
			},
		},
		{
			"put-resource-policy/works", putPolicy,
			"The answer is 200 with an empty body, and GetResourcePolicy returns an equal policy.",
			onPage(putPolicy), nothing, func(c *check) {
				a := c.policied().put
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				got, err := parseObject([]byte(c.succeeded(getPolicy,
					c.policied().got).text("Policy")))
				c.want(err == nil, "a policy", c.policied().got.String())
				c.equal("Policy", got, c.policied().policy)
			},
		},
		{
			"put-resource-policy/not-json", putPolicy,
			"A policy that is no JSON is refused with InvalidArgumentException.",
			guess("the reference names InvalidArgumentException alone"), nothing, func(c *check) {
				c.refused(putPolicy, object{"ResourceARN": c.main().arn, "Policy": "nonsense"},
					"InvalidArgumentException", "")
			},
		},
		{
			"delete-resource-policy/works", deletePolicy,
			"The answer is 200 with an empty body, and GetResourcePolicy then returns {}.",
			onPage(deletePolicy), nothing, func(c *check) {
				a := c.policied().deleted
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("Policy", c.succeeded(getPolicy, c.policied().again).text("Policy"), "{}")
			},
		},
	}
}
