package kinesis

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const ordersARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

// tagsOf returns a resource's tags as text.
func (n *node) tagsOf(arn string) string {
	n.t.Helper()
	return tagText(n.call("ListTagsForResource", m{"ResourceARN": arn}))
}

func tagText(answer m) string {
	var texts []string
	for _, tag := range answer["Tags"].([]any) {
		texts = append(texts, fmt.Sprint(tag.(m)["Key"], "=", tag.(m)["Value"]))
	}
	return strings.Join(texts, " ")
}

// manyTags are count tags from t<from> on.
func manyTags(from, count int) m {
	tags := m{}
	for i := range count {
		tags[fmt.Sprint("t", from+i)] = ""
	}
	return tags
}

// The round trip is that of kinesalite's tests, which ran against AWS.
func TestTagsOfStream(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.call("AddTagsToStream", m{"StreamName": "orders", "Tags": m{
		"a": "a", "ü0 _.": "a", "/=+-@:": "a", "b": "ü0 _./=+-@:", "c": "",
	}})
	n.call("AddTagsToStream", m{"StreamARN": ordersARN, "Tags": m{"a": "b"}})
	list := func(more m) m {
		more["StreamName"] = "orders"
		return n.call("ListTagsForStream", more)
	}
	if got := tagText(list(m{})); got != "/=+-@:=a a=b b=ü0 _./=+-@: c= ü0 _.=a" {
		t.Errorf("the tags are %s", got)
	}
	page := list(m{"Limit": 2, "ExclusiveStartTagKey": "aa"})
	if got := tagText(page); got != "b=ü0 _./=+-@: c=" || page["HasMoreTags"] != true {
		t.Errorf("the page is %s, more: %v", got, page["HasMoreTags"])
	}
	page = list(m{"Limit": 2, "ExclusiveStartTagKey": "b"})
	if got := tagText(page); got != "c= ü0 _.=a" || page["HasMoreTags"] != false {
		t.Errorf("the page is %s, more: %v", got, page["HasMoreTags"])
	}
	n.call("RemoveTagsFromStream",
		m{"StreamName": "orders", "TagKeys": []string{"ü0 _.", "/=+-@:", "nobody", "c"}})
	if got := tagText(list(m{})); got != "a=b b=ü0 _./=+-@:" {
		t.Errorf("after the removal the tags are %s", got)
	}
	n.call("RemoveTagsFromStream", m{"StreamName": "orders", "TagKeys": []string{"a", "b"}})
	if got := fmt.Sprint(list(m{})); got != "map[HasMoreTags:false Tags:[]]" {
		t.Errorf("without tags the answer is %s", got)
	}
}

func TestTagRules(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	const invalidText = "Some tags contain invalid characters. Valid characters: Unicode letters, " +
		"digits, white space, _ . / = + - % @."
	const illegalText = " stream orders under account 000000000000 because some tags contained " +
		"illegal characters. The allowed characters are Unicode letters, white-spaces, " +
		"'_',',','/','=','+','-','@'."
	for _, c := range []struct{ text, message string }{
		{"abc;def", invalidText},
		{"abc\tdef", invalidText},
		{"abc\ndef", invalidText},
		{"abc,def", invalidText},
		{"%;", invalidText},
		{"abc%def", "Failed to add tags to" + illegalText},
	} {
		for _, tags := range []m{{c.text: "1"}, {"a": c.text}} {
			n.refused("AddTagsToStream", m{"StreamName": "orders", "Tags": tags}, codeInvalid, c.message)
			n.refused("TagResource", m{"ResourceARN": ordersARN, "Tags": tags}, codeInvalid, c.message)
			n.refused("CreateStream", m{"StreamName": "orders", "ShardCount": 1, "Tags": tags},
				codeInvalid, c.message)
		}
		message := strings.Replace(c.message, "add tags to", "remove tags from", 1)
		n.refused("RemoveTagsFromStream", m{"StreamName": "orders", "TagKeys": []string{c.text}},
			codeInvalid, message)
		n.refused("UntagResource", m{"ResourceARN": ordersARN, "TagKeys": []string{c.text}},
			codeInvalid, message)
		// The check for the stream's existence comes first.
		n.refused("AddTagsToStream", m{"StreamName": "none", "Tags": m{c.text: ""}}, codeNotFound, "")
	}
	n.refused("AddTagsToStream", m{"StreamName": "orders", "Tags": m{"AWS:x": ""}}, codeInvalid,
		"because tag keys that begin with 'aws:' are reserved.")
	n.call("AddTagsToStream", m{"StreamName": "orders", "Tags": m{"aws": "aws:", "x-aws:": ""}})
	n.call("AddTagsToStream", m{"StreamName": "orders", "Tags": manyTags(0, 48)})
	n.refused("AddTagsToStream", m{"StreamName": "orders", "Tags": manyTags(40, 9)}, codeInvalid,
		"Failed to add tags to stream orders under account 000000000000 because a given stream "+
			"cannot have more than 50 tags associated with it.")
	if got := strings.Count(n.tagsOf(ordersARN), "="); got != 50 {
		t.Errorf("a refused call has left %d tags, want 50", got)
	}
	n.call("TagResource", m{"ResourceARN": ordersARN, "Tags": manyTags(40, 8)}) // no new one
	n.refused("CreateStream", m{"StreamName": "new", "ShardCount": 1, "Tags": manyTags(0, 51)},
		codeInvalid, "cannot have more than 50 tags")
}

// Tags and policies of streams and consumers are kept apart, and are there after a restart.
func TestResources(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	other := ordersARN + "s"
	n.create("orderss", 1)
	consumer := n.call("RegisterStreamConsumer", m{
		"StreamARN": ordersARN, "ConsumerName": "reader", "Tags": m{"own": "1"},
	})["Consumer"].(m)["ConsumerARN"].(string)
	n.call("TagResource", m{"ResourceARN": ordersARN, "Tags": m{"a": "1"}})
	n.call("TagResource", m{"ResourceARN": consumer, "Tags": m{"b": "2", "c": "3"}})
	n.call("UntagResource", m{"ResourceARN": consumer, "TagKeys": []string{"c", "a"}})
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow"}]}`
	n.call("PutResourcePolicy", m{"ResourceARN": ordersARN, "Policy": policy})
	n.call("PutResourcePolicy", m{"ResourceARN": consumer, "Policy": policy + " "})
	for range 2 {
		for arn, want := range map[string]string{
			ordersARN: "a=1 " + policy, other: " {}", consumer: "b=2 own=1 " + policy + " ",
		} {
			got := n.call("GetResourcePolicy", m{"ResourceARN": arn})["Policy"].(string)
			if got = n.tagsOf(arn) + " " + got; got != want {
				t.Errorf("%s has %s, want %s", arn, got, want)
			}
		}
		n.stop()
		n = startNode(t, n.fs)
	}
	for _, arn := range []string{ordersARN, consumer} {
		n.call("DeleteResourcePolicy", m{"ResourceARN": arn})
		if got := n.call("GetResourcePolicy", m{"ResourceARN": arn})["Policy"]; got != "{}" {
			t.Errorf("after its deletion the policy of %s is %v", arn, got)
		}
		n.refused("DeleteResourcePolicy", m{"ResourceARN": arn}, codeNotFound,
			"No resource policy found for resource ARN "+arn+".")
	}
}

func TestResourcesNotFound(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.call("RegisterStreamConsumer", m{"StreamARN": ordersARN, "ConsumerName": "reader"})
	for arn, message := range map[string]string{
		ordersARN + "s": "Stream orderss under account 000000000000 not found.",
		"arn:aws:kinesis:us-east-1:111111111111:stream/orders":   "Stream orders under account 1",
		"arn:aws:kinesis:eu-west-1:000000000000:stream/orders":   "Stream orders under account 0",
		"arn:aws:kinesis:us-east-1:000000000000:my-stream/x":     "Resource arn:aws:kinesis:us-",
		"arn:aws:kinesis:us-east-1:000000000000:stream/a/orders": "Resource arn:aws:kinesis:us-",
		ordersARN + "/consumer/reader:1":                         "not found.",
		ordersARN + "/consumer/none:1":                           "not found.",
	} {
		for operation, more := range map[string]m{
			"TagResource":          {"Tags": m{"a": "1"}},
			"UntagResource":        {"TagKeys": []string{"a"}},
			"ListTagsForResource":  {},
			"PutResourcePolicy":    {"Policy": `{"Statement":[]}`},
			"GetResourcePolicy":    {},
			"DeleteResourcePolicy": {},
		} {
			more["ResourceARN"] = arn
			n.refused(operation, more, codeNotFound, message)
		}
	}
}

func TestPolicyRules(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	for _, c := range []struct{ policy, code string }{
		{"", codeInvalid},
		{"x", codeInvalid},
		{`"text"`, codeInvalid},
		{`[]`, codeInvalid},
		{`null`, codeInvalid},
		{`{}`, codeInvalid},
		{`{"Statement":[]} x`, codeInvalid},
		{`{"Statement":["` + strings.Repeat("x", maxPolicy-17) + `"]}`, codeLimit},
	} {
		n.refused("PutResourcePolicy", m{"ResourceARN": ordersARN, "Policy": c.policy}, c.code,
			"resource policy")
	}
	longest := `{"Statement":["` + strings.Repeat("x", maxPolicy-18) + `"]}`
	n.call("PutResourcePolicy", m{"ResourceARN": ordersARN, "Policy": longest})
	if got := n.call("GetResourcePolicy", m{"ResourceARN": ordersARN})["Policy"]; got != longest {
		t.Errorf("the longest policy comes back with %d bytes", len(got.(string)))
	}
}

// Operations that change a stream or a consumer want it ACTIVE; operations that only look do not.
func TestResourcesMustBeActive(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.create("orders", 1)
	refused := func(arn, text string) {
		t.Helper()
		for operation, more := range map[string]m{
			"TagResource":          {"Tags": m{"a": "1"}},
			"UntagResource":        {"TagKeys": []string{"a"}},
			"PutResourcePolicy":    {"Policy": `{"Statement":[]}`},
			"DeleteResourcePolicy": {},
		} {
			more["ResourceARN"] = arn
			n.refused(operation, more, codeInUse, text)
		}
		n.call("GetResourcePolicy", m{"ResourceARN": arn})
		n.tagsOf(arn)
	}
	const creating = "Stream orders under account 000000000000 not ACTIVE, instead in state CREATING"
	refused(ordersARN, creating)
	n.refused("AddTagsToStream", m{"StreamName": "orders", "Tags": m{"a": "1"}}, codeInUse, creating)
	n.refused("RemoveTagsFromStream", m{"StreamName": "orders", "TagKeys": []string{"a"}}, codeInUse,
		creating)
	clock.advance(time.Second)
	consumer := n.call("RegisterStreamConsumer", m{
		"StreamARN": ordersARN, "ConsumerName": "reader",
	})["Consumer"].(m)["ConsumerARN"].(string)
	refused(consumer, "is not in ACTIVE status.")
	clock.advance(time.Second)
	n.call("TagResource", m{"ResourceARN": consumer, "Tags": m{"a": "1"}})
	n.call("TagResource", m{"ResourceARN": ordersARN, "Tags": m{"a": "1"}})
	n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
	refused(ordersARN, "instead in state DELETING")
}

// The input map stays unchanged: it may be part of a stream that others read.
func TestTagsAreCopied(t *testing.T) {
	tags := map[string]string{"a": "1"}
	value := "2"
	more, err := addTags(tags, map[string]*string{"a": &value, "b": nil}, "")
	if err != nil || fmt.Sprint(more) != "map[a:2 b:]" {
		t.Errorf("added: %v, %v", more, err)
	}
	fewer, err := removeTags(tags, []string{"a"}, "")
	if err != nil || len(fewer) != 0 {
		t.Errorf("removed: %v, %v", fewer, err)
	}
	if fmt.Sprint(tags) != "map[a:1]" {
		t.Errorf("the tags are %v", tags)
	}
}
