package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// ask makes a call without a client, which might try again.
func ask(s *server.Server, target string, in map[string]any) (int, string) {
	body, _ := json.Marshal(in)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	if strings.HasPrefix(target, "DynamoDB") {
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	}
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestStalled fills the disk. Writes are refused with codes that AWS documents as not executed, so
// that the producer knows that nothing was stored. Reads go on, and say that there is more to come.
func TestStalled(t *testing.T) {
	disk := vfs.NewMem()
	v := serve(t, server.Config{LogFileSize: 256 << 10}, seam.OnFS(disk))
	const kinesis, dynamo = "Kinesis_20131202.", "DynamoDB_20120810."
	table := map[string]any{
		"TableName": "leases", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema":            []any{map[string]any{"AttributeName": "k", "KeyType": "HASH"}},
		"AttributeDefinitions": []any{map[string]any{"AttributeName": "k", "AttributeType": "S"}},
	}
	if code, body := ask(v.Server, dynamo+"CreateTable", table); code != http.StatusOK {
		t.Fatal(body)
	}
	put := map[string]any{"StreamName": "s", "Records": []any{
		map[string]any{"PartitionKey": "k", "Data": ""},
		map[string]any{"PartitionKey": "l", "Data": ""},
	}}
	item := func(text string) map[string]any {
		return map[string]any{
			"TableName": "leases", "Item": map[string]any{
				"k": map[string]any{"S": "x"}, "text": map[string]any{"S": text},
			},
		}
	}
	disk.SetLimit(disk.Used())
	filling := make(chan struct{})
	go func() { // the last call waits for room in the log, and ends when there is some
		defer close(filling)
		for range 100 {
			code, _ := ask(v.Server, dynamo+"PutItem", item(strings.Repeat("x", 100<<10)))
			if code != http.StatusOK {
				return
			}
		}
	}()
	within(t, 20*time.Second, func() bool {
		code, _ := v.health(t)
		return code != http.StatusOK
	})
	for _, c := range []struct {
		target string
		in     map[string]any
		code   int
		want   string
	}{
		{kinesis + "PutRecords", put, 200, `"FailedRecordCount":2`},
		{kinesis + "PutRecords", put, 200, `"ErrorCode":"InternalFailure"`},
		{
			kinesis + "PutRecord",
			map[string]any{"StreamName": "s", "PartitionKey": "k", "Data": ""},
			400, `"__type":"ProvisionedThroughputExceededException"`,
		},
		{
			kinesis + "CreateStream",
			map[string]any{"StreamName": "new", "ShardCount": 1},
			400, `"__type":"LimitExceededException"`,
		},
		{
			kinesis + "AddTagsToStream",
			map[string]any{"StreamName": "s", "Tags": map[string]any{"a": "b"}},
			400, `"__type":"LimitExceededException"`,
		},
		{
			dynamo + "PutItem", item("y"), 400, `#ProvisionedThroughputExceededException"`,
		},
		{
			dynamo + "UpdateTable",
			map[string]any{"TableName": "leases", "DeletionProtectionEnabled": true},
			400, `#ThrottlingException"`,
		},
	} {
		code, body := ask(v.Server, c.target, c.in)
		if code != c.code || !strings.Contains(body, c.want) ||
			!strings.Contains(body, "waits for disk space") {
			t.Errorf("%s: %d %s; want %d with %s", c.target, code, body, c.code, c.want)
		}
	}
	disk.SetLimit(1 << 40)
	<-filling
	within(t, 20*time.Second, func() bool {
		code, body := ask(v.Server, kinesis+"PutRecords", put)
		return code == http.StatusOK && strings.Contains(body, `"FailedRecordCount":0`)
	})
}

// TestStalledSegments: a disk without room for the shards' segments refuses their records, each of
// them as not stored, and accepts everything else.
func TestStalledSegments(t *testing.T) {
	disk := vfs.NewMem()
	v := serve(t, server.Config{}, seam.OnFS(vfs.Inject(disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".seg") {
			return vfs.ErrNoSpace
		}
		return nil
	})))
	put := map[string]any{"StreamName": "s", "Records": []any{
		map[string]any{"PartitionKey": "k", "Data": ""},
	}}
	within(t, 20*time.Second, func() bool {
		code, body := ask(v.Server, "Kinesis_20131202.PutRecords", put)
		return code == http.StatusOK && strings.Contains(body, `"ErrorCode":"InternalFailure"`) &&
			strings.Contains(body, "segments cannot be written")
	})
	code, body := ask(v.Server, "Kinesis_20131202.PutRecord",
		map[string]any{"StreamName": "s", "PartitionKey": "k", "Data": ""})
	if code != 400 || !strings.Contains(body, "ProvisionedThroughputExceededException") {
		t.Errorf("PutRecord: %d %s", code, body)
	}
}

// TestTransactionsDeleteOnAFullDisk: a transaction that only deletes uses the log's reserve, as
// DeleteItem does. One that writes, or that finds nothing to delete, is refused.
func TestTransactionsDeleteOnAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	v := serve(t, server.Config{LogFileSize: 256 << 10}, seam.OnFS(disk))
	v.createTable(t)
	const dynamo = "DynamoDB_20120810."
	key := func(name string) map[string]any {
		return map[string]any{"k": map[string]any{"S": name}}
	}
	for _, name := range []string{"a", "b", "c", "d", "check"} {
		if code, body := ask(v.Server, dynamo+"PutItem",
			map[string]any{"TableName": "table", "Item": key(name)}); code != http.StatusOK {
			t.Fatal(body)
		}
	}
	disk.SetLimit(disk.Used())
	v.fillItems(t)
	remove := func(name string) map[string]any {
		return map[string]any{"Delete": map[string]any{"TableName": "table", "Key": key(name)}}
	}
	check := map[string]any{"ConditionCheck": map[string]any{
		"TableName": "table", "Key": key("check"), "ConditionExpression": "attribute_exists(k)",
	}}
	put := map[string]any{"Put": map[string]any{"TableName": "table", "Item": key("new")}}
	for _, c := range []struct {
		name  string
		items []any
		code  int
	}{
		{"one", []any{remove("a")}, http.StatusOK},
		{"two and a check", []any{remove("b"), remove("c"), check}, http.StatusOK},
		{"one there, one not", []any{remove("d"), remove("none")}, http.StatusOK},
		{"a put too", []any{remove("check"), put}, http.StatusBadRequest},
		{"nothing there", []any{remove("a")}, http.StatusBadRequest},
		{"only a check", []any{check}, http.StatusBadRequest},
	} {
		code, body := ask(v.Server, dynamo+"TransactWriteItems",
			map[string]any{"TransactItems": c.items, "ClientRequestToken": c.name})
		if code != c.code || (code != http.StatusOK &&
			!strings.Contains(body, "ProvisionedThroughputExceeded")) {
			t.Errorf("%s: %d %s; want %d", c.name, code, body, c.code)
		}
	}
	for name, want := range map[string]bool{
		"a": false, "b": false, "c": false, "d": false, "check": true, "new": false,
	} {
		code, body := ask(v.Server, dynamo+"GetItem",
			map[string]any{"TableName": "table", "Key": key(name)})
		if code != http.StatusOK || strings.Contains(body, "Item") != want {
			t.Errorf("%s: %d %s; there: %v", name, code, body, want)
		}
	}
}
