package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
)

// operations lists all operations of the API (service model of 2013-12-02).
var operations = strings.Fields(`AddTagsToStream CreateStream DecreaseStreamRetentionPeriod
	DeleteResourcePolicy DeleteStream DeregisterStreamConsumer DescribeAccountSettings
	DescribeLimits DescribeStream DescribeStreamConsumer DescribeStreamSummary
	DisableEnhancedMonitoring EnableEnhancedMonitoring GetRecords GetResourcePolicy
	GetShardIterator IncreaseStreamRetentionPeriod ListShards ListStreamConsumers ListStreams
	ListTagsForResource ListTagsForStream MergeShards PutRecord PutRecords PutResourcePolicy
	RegisterStreamConsumer RemoveTagsFromStream SplitShard StartStreamEncryption
	StopStreamEncryption SubscribeToShard TagResource UntagResource UpdateAccountSettings
	UpdateMaxRecordSize UpdateShardCount UpdateStreamMode UpdateStreamWarmThroughput`)

// TestFacts checks the suite itself: each fact has a unique id in the right form, a sentence and a
// named source, and each operation has at least two facts.
func TestFacts(t *testing.T) {
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*$`)
	about := map[string]int{"": 0}
	for _, op := range operations {
		about[op] = 0
	}
	if len(about) != 40 {
		t.Fatalf("%d operations, want 39", len(about)-1)
	}
	seen := map[string]bool{}
	for _, f := range facts() {
		if seen[f.id] || !id.MatchString(f.id) {
			t.Errorf("%s: a double, or no id", f.id)
		}
		seen[f.id] = true
		if !strings.HasSuffix(f.says, ".") || strings.HasSuffix(f.says, "..") {
			t.Errorf("%s: no sentence: %s", f.id, f.says)
		}
		if f.source.where == "" {
			t.Errorf("%s: a source without a name", f.id)
		}
		if _, known := about[f.op]; !known {
			t.Errorf("%s: no operation: %s", f.id, f.op)
		}
		about[f.op]++
	}
	for op, n := range about {
		if n < 2 {
			t.Errorf("%s: %d facts, want 2 at least", op, n)
		}
	}
}

// TestNonsense checks servers that answer nonsense: at most six facts may be ok, and no check may
// fail by a panic.
func TestNonsense(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"empty":  func(http.ResponseWriter, *http.Request) {},
		"object": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"active": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(nonsense)) },
		"frames": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
			_, _ = w.Write([]byte("this is no frame, and long enough to be taken for one"))
		},
		"wrong error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"TeapotException","message":{"a":[1]}}`))
		},
		"cbor": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeCBOR)
			_, _ = w.Write([]byte{0xbf, 0x61, 0x61, 0x9f})
		},
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			defer server.Close()
			k := newKit(t.Context(), target{
				endpoint: mustParse(t, server.URL), region: "us-east-1", wait: 50 * time.Millisecond,
				credentials: credentials.NewStaticCredentialsProvider("000000000000", "x", ""),
			})
			results := k.run(t.Context(), facts(), func(result) {})
			s := summarize(results)
			if s.counts[outcomeOK] > 6 {
				t.Errorf("%d facts are ok of nonsense", s.counts[outcomeOK])
			}
			for _, r := range results {
				if r.outcome == outcomeOK {
					t.Logf("ok of nonsense: %s", r.fact.id)
				}
				if strings.Contains(r.reason, "the check itself failed") {
					t.Errorf("%s: %s", r.fact.id, r.reason)
				}
			}
			if s.status() == exitOK {
				t.Errorf("status 0: %v", s)
			}
		})
	}
}

// nonsense has the members that scenes wait for, but no others.
const nonsense = `{"StreamDescriptionSummary":{"StreamStatus":"ACTIVE"},"StreamDescription":{},
	"ConsumerDescription":{"ConsumerStatus":"ACTIVE"},"ShardIterator":"i","Records":[]}`

// TestSameMessage shows that equal messages may differ in the order of violations and enum values.
func TestSameMessage(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"x", "x", true},
		{"x", "y", false},
		{"x; y", "y; x", false}, // no list of violations
		{
			"2 validation errors detected: a at 'x'; b at 'y'",
			"2 validation errors detected: b at 'y'; a at 'x'", true,
		},
		{
			"2 validation errors detected: a; b", "3 validation errors detected: a; b", false,
		},
		{
			"1 validation error detected: must satisfy enum value set: [A, B]",
			"1 validation error detected: must satisfy enum value set: [B, A]", true,
		},
		{"enum value set: [A, B]", "enum value set: [A]", false},
	} {
		if got := sameMessage(c.a, c.b); got != c.same {
			t.Errorf("%q and %q: same is %v, want %v", c.a, c.b, got, c.same)
		}
	}
}

// TestAt reads objects by existing and by absent paths.
func TestAt(t *testing.T) {
	o, err := parseObject([]byte(`{"a":{"b":[{"c":"x"},{"c":1.5}]},"n":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.text("a.b.0.c"); got != "x" {
		t.Errorf("a.b.0.c is %q", got)
	}
	if n, ok := o.number("a.b.1.c"); !ok || n != 1.5 {
		t.Errorf("a.b.1.c is %v", n)
	}
	for _, path := range []string{"a.b.2.c", "a.b.-1", "a.b.x", "z", "a.b.0.c.d", "n.x"} {
		if v := o.at(path); v != nil {
			t.Errorf("%s is %v", path, v)
		}
	}
	if !o.has("n") || o.has("z") || len(o.list("a.b")) != 2 || len(o.list("z")) != 0 {
		t.Error("members or lists are wrong")
	}
}
