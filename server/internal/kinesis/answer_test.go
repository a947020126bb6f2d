package kinesis

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// inFormat is a JSON document in a format, without blobs and timestamps.
func inFormat(t testing.TB, format wire.Format, document string) []byte {
	t.Helper()
	if format == wire.JSON {
		return []byte(document)
	}
	var tree any
	if err := json.Unmarshal([]byte(document), &tree); err != nil {
		t.Fatal(err)
	}
	encoded, err := cbor.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

type fatalfer interface {
	Helper()
	Fatalf(string, ...any)
}

// fromCBOR decodes an answer into the values that encoding/json makes of the same in JSON. It
// insists on the form of AWS's answers: definite lengths, byte strings for blobs, tag 1 and whole
// ms for times.
func fromCBOR(t fatalfer, body []byte) any {
	t.Helper()
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IndefLength: cbor.IndefLengthForbidden,
		DupMapKey: cbor.DupMapKeyEnforcedAPF,
	}.DecMode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	var tree any
	if err := mode.Unmarshal(body, &tree); err != nil {
		t.Fatalf("%x: %v", body, err)
	}
	return plainTree(t, tree)
}

func plainTree(t fatalfer, tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			tree[name] = plainTree(t, value)
		}
	case []any:
		for i, value := range tree {
			tree[i] = plainTree(t, value)
		}
	case []byte:
		return base64.StdEncoding.EncodeToString(tree)
	case uint64:
		return float64(tree)
	case int64:
		return float64(tree)
	case time.Time: // the library takes the ms of tag 1 for seconds
		if tree.Nanosecond() != 0 {
			t.Fatalf("a time is not a whole number: %v", tree)
		}
		return float64(tree.Unix()) / 1000
	case nil, bool, string:
	default:
		t.Fatalf("the answer has a %T: %v", tree, tree)
	}
	return tree
}

func fromJSON(t fatalfer, body []byte) any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return tree
}

// sameInBoth compares an answer's two forms. Tokens are drawn anew for every answer.
func sameInBoth(t fatalfer, inJSON, inCBOR []byte) {
	t.Helper()
	a, b := fromJSON(t, inJSON), fromCBOR(t, inCBOR)
	for _, tree := range []any{a, b} {
		for _, token := range []string{"NextShardIterator", "ShardIterator", "NextToken"} {
			if object, ok := tree.(m); ok && object[token] != nil {
				object[token] = len(object[token].(string))
			}
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("JSON: %v\nCBOR: %v", a, b)
	}
}

// A stream's description is the same in both formats, times and blobs included.
func TestAnswers(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 3)
	n.create("users", 1)
	const arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
	n.call("AddTagsToStream", m{"StreamName": "orders", "Tags": m{"a": "1", "ü": ""}})
	n.call("RegisterStreamConsumer", m{"StreamARN": arn, "ConsumerName": "c"})
	n.call("EnableEnhancedMonitoring", m{"StreamName": "orders", "ShardLevelMetrics": []string{"ALL"}})
	n.call("PutResourcePolicy", m{"ResourceARN": arn, "Policy": `{"Version":"2012-10-17","Statement":[]}`})
	for i := range 5 {
		clock.advance(1234 * time.Millisecond)
		n.put("orders", fmt.Sprint("é", i), "data\x00\xff")
	}
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "77"})
	n.call("StartStreamEncryption", m{"StreamName": "orders", "EncryptionType": "KMS", "KeyId": "alias/k"})
	n.put("orders", "k", "secret")
	clock.advance(time.Second)
	requests := [][2]string{
		{"DescribeAccountSettings", `{}`},
		{"DescribeLimits", `{}`},
		{"DescribeStream", `{"StreamName":"orders","Limit":2}`},
		{"DescribeStreamConsumer", `{"StreamARN":"` + arn + `","ConsumerName":"c"}`},
		{"DescribeStreamSummary", `{"StreamARN":"` + arn + `"}`},
		{"GetResourcePolicy", `{"ResourceARN":"` + arn + `"}`},
		{"ListShards", `{"StreamName":"orders","MaxResults":2}`},
		{"ListStreamConsumers", `{"StreamARN":"` + arn + `"}`},
		{"ListStreams", `{"Limit":1}`},
		{"ListTagsForResource", `{"ResourceARN":"` + arn + `"}`},
		{"ListTagsForStream", `{"StreamName":"orders"}`},
		{"GetShardIterator", `{"StreamName":"orders","ShardId":"0","ShardIteratorType":"LATEST"}`},
		{"EnableEnhancedMonitoring", `{"StreamName":"orders","ShardLevelMetrics":["ALL"]}`},
	}
	for _, shard := range []string{"0", "1", "2", "3", "4"} {
		requests = append(requests, [2]string{
			"GetRecords",
			`{"ShardIterator":"` + n.iterator("orders", shard, "TRIM_HORIZON") + `"}`,
		})
	}
	all := ""
	for _, r := range requests {
		var bodies [2][]byte
		for i, format := range []wire.Format{wire.JSON, wire.CBOR} {
			answer, err := n.Serve(n.ctx, &wire.Call{
				Operation: r[0], Format: format, Body: inFormat(t, format, r[1]), World: here,
			})
			if err != nil {
				t.Fatalf("%s: %v", r[0], err)
			}
			bodies[i] = answer.Body
		}
		sameInBoth(t, bodies[0], bodies[1])
		all += string(bodies[0])
	}
	for _, want := range []string{`"ChildShards":[`, `"EncryptionType":"KMS"`, `"PartitionKey":"é`} {
		if strings.Count(all, want) == 0 {
			t.Errorf("no answer has %s", want)
		}
	}
}

// Struct tags mean the same in both formats: names, omitted members, embedding.
func TestEncodedTags(t *testing.T) {
	type inner struct {
		Name string
		At   *timestamp `json:",omitempty"`
	}
	type outer struct {
		inner
		ShardID string   `json:"ShardId,omitempty"`
		More    []string `json:",omitempty"`
		None    []string
		Tags    map[string]string
		Data    []byte
	}
	at := timestamp(1_700_000_000_123)
	for _, out := range []any{
		&outer{},
		&outer{inner{"é", &at}, "shardId-0", []string{"a"}, []string{}, map[string]string{"k": "<v>"}, []byte("d")},
	} {
		sameInBoth(t, encodedIn(t, wire.JSON, out), encodedIn(t, wire.CBOR, out))
	}
}

// An empty answer is an empty body in both formats.
func TestEmptyAnswers(t *testing.T) {
	n := newNode(t)
	for i, format := range []wire.Format{wire.JSON, wire.CBOR} {
		answer, err := n.Serve(n.ctx, &wire.Call{
			Operation: "CreateStream", Format: format, World: here,
			Body: inFormat(t, format, fmt.Sprintf(`{"StreamName":"s%d","ShardCount":1}`, i)),
		})
		if err != nil || answer.Body != nil {
			t.Errorf("format %d: %q, %v", format, answer.Body, err)
		}
	}
}

// The frequent answers, which are written out by hand, are the same in both formats and match the
// records.
func TestHotAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sh := &catalogue.Shard{Index: rapid.Uint32Max(9).Draw(t, "shard"), Created: 1_700_000_000}
		of := &catalogue.Settings{}
		if rapid.Bool().Draw(t, "encrypted") {
			of.Encrypt("key", 500, 0)
		}
		r := &reading{
			settings: of, shard: sh, behind: rapid.Int64Range(0, 1e12).Draw(t, "behind"),
			iterator: rapid.StringMatching("[a-z]{0,300}").Draw(t, "iterator"),
		}
		put := &putRecordsOutput{}
		index := uint64(0)
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			index += 1 + rapid.Uint64Max(1e6).Draw(t, "gap")
			record := shardlog.Record{
				Number: shardlog.Number{
					Index: index, Serial: index, Arrival: rapid.Int64Range(0, 2e12).Draw(t, "arrival"),
				},
				PartitionKey: rapid.String().Draw(t, "key"),
				Data:         rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"),
			}
			r.records = append(r.records, record)
			result := putResult{
				shard: sh, number: record.Number,
				encrypted: of.Encrypts(record.Arrival),
			}
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				result = putResult{code: codeThrottled, message: rapid.String().Draw(t, "message")}
			}
			put.results = append(put.results, result)
		}
		if r.iterator == "" {
			r.children = []*catalogue.Shard{sh, {Index: 7, Parents: []uint32{1, 2}}}
		}
		sameInBoth(t, encodedIn(t, wire.JSON, r), encodedIn(t, wire.CBOR, r))
		inJSON := encodedIn(t, wire.JSON, put)
		sameInBoth(t, inJSON, encodedIn(t, wire.CBOR, put))
		for i := range put.results {
			if one := (&putRecordOutput{put.results[i]}); one.result.code == "" {
				sameInBoth(t, encodedIn(t, wire.JSON, one), encodedIn(t, wire.CBOR, one))
			}
		}
		var got got
		if err := json.Unmarshal(encodedIn(t, wire.JSON, r), &got); err != nil {
			t.Fatal(err)
		}
		for i, record := range got.Records {
			want := r.records[i]
			if string(record.Data) != string(want.Data) ||
				record.PartitionKey != strings.ToValidUTF8(want.PartitionKey, "\ufffd") ||
				record.ApproximateArrivalTimestamp != float64(want.Arrival)/1000 {
				t.Fatalf("%+v is written as %+v", want, record)
			}
		}
	})
}

func encodedIn(t fatalfer, format wire.Format, out any) []byte {
	t.Helper()
	body, err := encode(&wire.Call{Format: format}, out)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return body
}

// Heads of every width, compared with another encoder.
func TestCBORHeads(t *testing.T) {
	for _, n := range []int64{
		0, 1, 23, 24, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, 1<<63 - 1, -1, -24, -25, -256, -257,
		-1 << 63,
	} {
		want, err := cbor.Marshal(n)
		if got := appendCBORInt(nil, n); err != nil || string(got) != string(want) {
			t.Errorf("%d is %x, want %x (%v)", n, got, want, err)
		}
	}
}
