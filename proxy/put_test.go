package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/runneltest"
)

// The answer has each record's shard and sequence number in the stream. The proxy uses the explicit
// hash keys, and does not change the data.
func TestPutBySDK(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
	s := serve(t, server.Kinesis(), nil)
	client := s.client(t)
	one, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("orders"), PartitionKey: aws.String("a"), Data: []byte("first"),
		ExplicitHashKey: aws.String("0"), SequenceNumberForOrdering: aws.String("0"),
	})
	if err != nil {
		t.Fatal(err)
	}
	empty := record("b", "")
	empty.Data = []byte{}
	last := record("c", "last")
	last.ExplicitHashKey = aws.String("340282366920938463463374607431768211455")
	many, err := putAll(t, client, "orders", empty, record("a", "\x00\xff"), last)
	if err != nil {
		t.Fatal(err)
	}
	if len(many.Records) != 3 || aws.ToInt32(many.FailedRecordCount) != 0 {
		t.Fatalf("%d results, %d failed", len(many.Records), *many.FailedRecordCount)
	}
	if *one.ShardId != "shardId-000000000000" || *many.Records[2].ShardId != "shardId-000000000001" {
		t.Errorf("the explicit hash keys lead to %s, %s", *one.ShardId, *many.Records[2].ShardId)
	}
	want := []string{*one.ShardId + " " + *one.SequenceNumber + " a first"}
	for i, text := range []string{"b ", "a \x00\xff", "c last"} {
		r := many.Records[i]
		want = append(want, *r.ShardId+" "+*r.SequenceNumber+" "+text)
	}
	var got []string
	for i, shard := range readAll(t, server.Kinesis(), "orders") {
		for _, r := range shard {
			got = append(got, fmt.Sprintf("shardId-%012d %s %s %s", i, *r.SequenceNumber,
				*r.PartitionKey, r.Data))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
}

// A record that is an aggregate already is put unchanged.
func TestPutAggregate(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	client := serve(t, server.Kinesis(), nil).client(t)
	var encoder aggregate.Encoder
	for _, text := range []string{"1", "2"} {
		if err := encoder.Add(aggregate.Record{PartitionKey: "a", Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	sent := encoder.Seal(nil)
	if _, err := putAll(t, client, "orders", record("a", string(sent))); err != nil {
		t.Fatal(err)
	}
	at, err := server.Kinesis().GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("orders"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := server.Kinesis().GetRecords(t.Context(),
		&kinesis.GetRecordsInput{ShardIterator: at.ShardIterator})
	if err != nil || len(page.Records) != 1 || !bytes.Equal(page.Records[0].Data, sent) {
		t.Errorf("the stream has not the same record: %v", err)
	}
}

// A put to a missing stream fails as a whole, with upstream's error.
func TestMissingStream(t *testing.T) {
	server := runneltest.NewServer(t)
	s := serve(t, server.Kinesis(), nil)
	client := s.client(t)
	_, err := putAll(t, client, "nowhere", record("a", "1"), record("b", "2"))
	_, oneErr := client.PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("nowhere"), PartitionKey: aws.String("a"), Data: []byte("1"),
	})
	for _, err := range []error{err, oneErr} {
		var missing *types.ResourceNotFoundException
		const want = "Stream nowhere under account 000000000000 not found."
		if !errors.As(err, &missing) || missing.ErrorMessage() != want {
			t.Errorf("%v; want ResourceNotFoundException: %s", err, want)
		}
	}
}

// The proxy takes no record of a wrong request, and refuses it with the server's own words.
func TestWrongRequests(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), nil)
	const good = `{"PartitionKey":"a","Data":"MQ=="}`
	records := func(list string) string { return `{"StreamName":"orders","Records":[` + list + `]}` }
	// A server directly: it decodes requests with the same code, and checks them with its own.
	direct := &testProxy{endpoint: server.Endpoint()}
	for name, c := range map[string]struct{ target, body, want string }{
		"not JSON":         {puts, `{"StreamName"`, "SerializationException"},
		"trailing":         {puts, records(good) + "x", "SerializationException"},
		"an array":         {puts, `[]`, "SerializationException"},
		"wrong type":       {puts, records(`{"PartitionKey":1,"Data":"MQ=="}`), "SerializationException"},
		"Records an int":   {puts, `{"StreamName":"orders","Records":1}`, "SerializationException"},
		"not base64":       {put, `{"StreamName":"orders","PartitionKey":"a","Data":"*"}`, "SerializationException"},
		"no records":       {puts, records(""), "ValidationException"},
		"null records":     {puts, `{"StreamName":"orders","Records":null}`, "ValidationException"},
		"501 records":      {puts, records(good + strings.Repeat(","+good, 500)), "ValidationException"},
		"far too many":     {puts, records(good + strings.Repeat(","+good, 6000)), "ValidationException"},
		"no stream":        {puts, `{"Records":[` + good + `]}`, "InvalidArgumentException"},
		"a bad stream":     {puts, `{"StreamName":"or ders","Records":[` + good + `]}`, "ValidationException"},
		"a bad ARN":        {puts, `{"StreamARN":"arn:x","Records":[` + good + `]}`, "ValidationException"},
		"a null body":      {puts, `null`, "ValidationException"},
		"line breaks":      {put, `{"StreamName":"orders","PartitionKey":"a","Data":"MQ==\n"}`, "found: 5"},
		"other case":       {puts, `{"StreamName":"orders","records":[` + good + `]}`, "Value null at 'records'"},
		"an empty stream":  {puts, `{"StreamName":"","Records":[` + good + `]}`, "2 validation errors"},
		"a long stream":    {puts, `{"StreamName":"` + strings.Repeat("s", 100_000) + `","Records":[` + good + `]}`, "2 validation errors"},
		"many faults":      {puts, records(`{}` + strings.Repeat(`,{}`, 9)), "10 validation errors"},
		"faults and range": {puts, records(`{"PartitionKey":"a","ExplicitHashKey":"340282366920938463463374607431768211456"}`), "1 validation error detected"},
		"hash above range": {puts, records(`{"PartitionKey":"a","Data":"","ExplicitHashKey":"340282366920938463463374607431768211456"}`), "InvalidArgumentException"},
		"much data":        {put, `{"StreamName":"orders","PartitionKey":"a","Data":"` + strings.Repeat("AAAA", 10<<20/3+1) + `"}`, "java.nio.HeapByteBuffer[pos=0 lim=10485762"},
		"two streams":      {puts, `{"StreamName":"x","StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/orders","Records":[` + good + `]}`, "InvalidArgumentException"},
		"no key":           {puts, records(good + `,{"Data":"MQ=="}`), "records.2.member.partitionKey"},
		"an empty key":     {puts, records(good + `,{"PartitionKey":"","Data":"MQ=="}`), "records.2.member.partitionKey"},
		"a long key":       {puts, records(good + `,{"PartitionKey":"` + strings.Repeat("ä", 257) + `","Data":"MQ=="}`), "records.2.member.partitionKey"},
		"no data":          {puts, records(good + `,{"PartitionKey":"a"}`), "records.2.member.data"},
		"no data, one":     {put, `{"StreamName":"orders","PartitionKey":"a"}`, "at 'data'"},
		"a wrong hash key": {puts, records(good + `,{"PartitionKey":"a","Data":"MQ==","ExplicitHashKey":"01"}`), "records.2.member.explicitHashKey"},
		"too much":         {puts, records(strings.Repeat(`{"PartitionKey":"a","Data":"`+strings.Repeat("AAAA", 700_000)+`"},`, 5) + good), "Records size exceeds 10 MB limit"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := s.postJSON(t, c.target, c.body)
			if status != http.StatusBadRequest || !strings.Contains(answer, c.want) {
				t.Errorf("%d %.300s; want 400 with %s", status, answer, c.want)
			}
			if status, words := direct.postJSON(t, c.target, c.body); words != answer {
				t.Errorf("%.500s\nthe server answers %d %.500s", answer, status, words)
			}
		})
	}
	if stored := readAll(t, server.Kinesis(), "orders"); len(stored[0]) != 0 {
		t.Errorf("%d records of wrong requests are in the stream", len(stored[0]))
	}
	if status, answer := s.postJSON(t, puts, records(good)); status != http.StatusOK {
		t.Errorf("the good record: %d %s", status, answer)
	}
}

// TestRecordAboveEveryLimit: data of the highest limit, with a key that exceeds it.
func TestRecordAboveEveryLimit(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	client := serve(t, server.Kinesis(), nil).client(t)
	_, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("orders"), PartitionKey: aws.String("a"), Data: make([]byte, 10<<20),
	})
	if err == nil || !strings.Contains(err.Error(), "data and partition key have 10485761 bytes") {
		t.Error(err)
	}
}

// A record above the stream's own limit fails alone.
func TestRecordAboveStreamLimit(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	client := serve(t, server.Kinesis(), nil).client(t)
	big := strings.Repeat("x", 1<<20) // with its key above the stream's limit
	out, err := putAll(t, client, "orders", record("a", "1"), record("b", big), record("a", "2"))
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Records[1]; *out.FailedRecordCount != 1 || aws.ToString(got.ErrorCode) == "" ||
		aws.ToString(got.ErrorCode) == "InternalFailure" || got.SequenceNumber != nil {
		t.Errorf("%d failed, the large one with %v: %v", *out.FailedRecordCount,
			aws.ToString(got.ErrorCode), aws.ToString(got.ErrorMessage))
	}
	if stored := readAll(t, server.Kinesis(), "orders")[0]; len(stored) != 2 {
		t.Errorf("%d records are in the stream, want 2", len(stored))
	}
}

// Puts in CBOR, as the Java SDK sends them.
func TestCBOR(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), nil)
	type m map[string]any
	call := func(target string, document any) (int, m) {
		body, err := cbor.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		status, answer := s.post(t, target, "application/x-amz-cbor-1.1", bytes.NewReader(body))
		got := m{}
		if err := cbor.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%d %q: %v", status, answer, err)
		}
		return status, got
	}
	entry := m{"PartitionKey": "a", "Data": []byte{0, 255}}
	status, many := call(puts, m{"StreamName": "orders", "Records": []m{entry, entry}})
	if status != http.StatusOK || len(many["Records"].([]any)) != 2 ||
		fmt.Sprint(many["FailedRecordCount"]) != "0" {
		t.Errorf("PutRecords: %d %v", status, many)
	}
	status, one := call(put, m{"StreamName": "orders", "PartitionKey": "a", "Data": []byte{0, 255}})
	if status != http.StatusOK || one["ShardId"] != "shardId-000000000000" {
		t.Errorf("PutRecord: %d %v", status, one)
	}
	stored := readAll(t, server.Kinesis(), "orders")[0]
	if len(stored) != 3 || !bytes.Equal(stored[0].Data, []byte{0, 255}) ||
		*stored[2].SequenceNumber != one["SequenceNumber"] {
		t.Errorf("%d records are in the stream, want 3, the last as answered: %v", len(stored), one)
	}
	status, refused := call(puts, m{"StreamName": "nowhere", "Records": []m{entry}})
	if status != http.StatusBadRequest || refused["__type"] != "ResourceNotFoundException" {
		t.Errorf("no such stream: %d %v", status, refused)
	}
	long := make([]m, 5001)
	for i := range long {
		long[i] = entry
	}
	if status, refused := call(puts, m{"StreamName": "orders", "Records": long}); status != http.StatusBadRequest ||
		refused["__type"] != "ValidationException" {
		t.Errorf("far too many: %d %v", status, refused)
	}
}

// Requests by name and by ARN reach the same producer, and the ARN of another account reaches
// another one. The proxy finds its account with one call, of an existing or a missing stream.
func TestNamesAndARNs(t *testing.T) {
	const ours, theirs = "arn:aws:kinesis:us-east-1:000000000000:stream/orders",
		"arn:aws:kinesis:us-east-1:111111111111:stream/"
	for name, first := range map[string]string{
		"by an existing stream": "orders", "by a missing stream": "elsewhere",
	} {
		t.Run(name, func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
			g, upstream := gated(t, server)
			g.release()
			s := serve(t, upstream, nil)
			send := func(target string) (int, string) {
				return s.postJSON(t, puts,
					`{`+target+`,"Records":[{"PartitionKey":"a","Data":"MQ=="}]}`)
			}
			status, answer := send(`"StreamARN":"` + theirs + first + `"`)
			if status != http.StatusBadRequest ||
				!strings.Contains(answer, "ResourceNotFoundException") {
				t.Errorf("another account's: %d %s", status, answer)
			}
			for _, target := range []string{
				`"StreamARN":"` + ours + `"`, `"StreamName":"orders"`,
				`"StreamName":"orders","StreamARN":"` + ours + `"`,
			} {
				if status, answer := send(target); status != http.StatusOK {
					t.Errorf("%s: %d %s", target, status, answer)
				}
			}
			_, page := s.get(t, "/metrics")
			const delivered = "runnel_proxy_stream_records_delivered_total"
			if !strings.Contains(page, delivered+`{stream="orders"} 3`) ||
				!strings.Contains(page, delivered+`{stream="arn:aws:kinesis:us-east-1:1111`) {
				t.Errorf("want the producers of orders, with 3 records, and of the other "+
					"account's stream:\n%s", page)
			}
			calls := 0
			for _, operation := range g.calls {
				if operation == "DescribeStreamSummary" {
					calls++
				}
			}
			if calls != 1 {
				t.Errorf("%d calls of DescribeStreamSummary, want 1", calls)
			}
		})
	}
}
