package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
	"github.com/runnel-stream/runnel/sink/rollup/rolluptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a table of a server.
func target(client *dynamodb.Client, table string) rolluptest.Target {
	return rolluptest.Target{
		Open: func() (rollup.RowStore, error) {
			return dynamostore.New(dynamostore.Config{DynamoDB: client, Table: table})
		},
		Bad: func(ctx context.Context) (map[string]string, error) {
			bad := map[string]string{}
			pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
				TableName: aws.String(table + "_bad"), ConsistentRead: aws.Bool(true),
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, item := range page.Items {
					key := item["pk"].(*types.AttributeValueMemberS).Value
					bad[key] = string(item["data"].(*types.AttributeValueMemberB).Value)
				}
			}
			return bad, nil
		},
	}
}

// once returns a client that makes each call once.
func once(server *runneltest.Server) *dynamodb.Client {
	return dynamodb.NewFromConfig(server.AWSConfig(), func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 1
	})
}

func TestSuite(t *testing.T) {
	server := runneltest.NewServer(t)
	var tables atomic.Int64
	rolluptest.Run(t, func(*testing.T) rolluptest.Target {
		return target(server.DynamoDB(), "edits-"+string(rune('a'+tables.Add(1))))
	})
}

// TestFleet loses answers of writes, too, and delays others.
func TestFleet(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2),
		runneltest.WithStreamDelay(-1),
		runneltest.WithFaults("PutItem:lose-answer%3 PutItem:commit-late=300ms%2 PutItem:throttle%3"))
	rolluptest.Fleet(t, rolluptest.Stream{Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB()},
		target(once(server), "edits"))
	for _, fault := range []string{"lose-answer", "commit-late", "throttle"} {
		if server.FaultCounts()["PutItem:"+fault] == 0 {
			t.Errorf("no fault %s", fault)
		}
	}
}

// TestErrors shows which errors pass.
func TestErrors(t *testing.T) {
	server := runneltest.NewServer(t)
	client := once(server)
	to := target(client, "edits")
	store, err := to.Open()
	if err != nil {
		t.Fatal(err)
	}
	setup := rollup.Setup{App: "a", Stream: "s", Definition: rollup.Definition{
		Keys: []rollup.Field{{Pointer: "/k"}}, Columns: []rollup.Column{{Op: rollup.Count}},
	}}
	if err := store.Prepare(t.Context(), setup); err != nil {
		t.Fatal(err)
	}
	row := rollup.StoredRow{Key: "a", Version: 1, Row: rollup.Row{
		Keys: []rollup.Value{{Text: "a"}}, Values: []rollup.Value{{Int: 1}},
	}}
	for fault, lasting := range map[string]bool{
		"throttle": false, "error-500": false, "lose-request": false,
		"refuse=AccessDeniedException": true,
	} {
		if err := server.SetFaults("GetItem:" + fault + " PutItem:" + fault); err != nil {
			t.Fatal(err)
		}
		_, read := store.Read(t.Context(), []string{"a"})
		for _, err := range []error{read, store.Write(t.Context(), row, 0)} {
			if err == nil || errors.Is(err, rollup.ErrLasting) != lasting {
				t.Errorf("%s: %v", fault, err)
			}
		}
	}
	if err := server.SetFaults(""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := store.Write(ctx, row, 0); err == nil || errors.Is(err, rollup.ErrLasting) {
		t.Errorf("a time-out: %v", err)
	}
	_, err = client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("edits")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Write(t.Context(), row, 0); !errors.Is(err, rollup.ErrLasting) {
		t.Errorf("no table: %v", err)
	}
}

// TestOtherKey refuses a table that is there with another key.
func TestOtherKey(t *testing.T) {
	client := runneltest.NewServer(t).DynamoDB()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("edits"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeHash},
		},
		AttributeDefinitions: []types.AttributeDefinition{{
			AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := target(client, "edits").Open()
	if err != nil {
		t.Fatal(err)
	}
	err = store.Prepare(t.Context(), rollup.Setup{App: "a", Stream: "s"})
	const want = `another primary key than "pk" (S): use another table`
	if err == nil || !errors.Is(err, rollup.ErrLasting) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestDamaged reads items that a store does not write.
func TestDamaged(t *testing.T) {
	server := runneltest.NewServer(t)
	store, err := target(server.DynamoDB(), "edits").Open()
	if err != nil {
		t.Fatal(err)
	}
	err = store.Prepare(t.Context(), rollup.Setup{App: "a", Stream: "s", Definition: rollup.Definition{
		Keys: []rollup.Field{{Pointer: "/k"}}, Bucket: time.Hour,
		Columns: []rollup.Column{
			{Op: rollup.Count},
			{Op: rollup.Sum, Field: rollup.Field{Pointer: "/d"}},
			{Op: rollup.Last, Field: rollup.Field{Pointer: "/l"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := func(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }
	n := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	whole := func() map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pk": s("a|2026-01-02T03:00:00Z"), "k": s("a"), "bucket": s("2026-01-02T03:00:00Z"),
			"count": n("1"), "sum_d": s("1e200"), "last_l": s(""), "version": n("1"), "expires": n("7"),
			"last_order": s(rollup.Order{Shard: "s"}.String()),
			"entries":    &types.AttributeValueMemberM{},
		}
	}
	read := func(change func(map[string]types.AttributeValue)) error {
		item := whole()
		change(item)
		_, err := server.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("edits"), Item: item,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Read(t.Context(), []string{"a|2026-01-02T03:00:00Z"})
		return err
	}
	if err := read(func(map[string]types.AttributeValue) {}); err != nil {
		t.Error(err)
	}
	check := func(attribute string, err error) {
		t.Helper()
		if !errors.Is(err, rollup.ErrDamaged) || !errors.Is(err, rollup.ErrLasting) ||
			!strings.Contains(err.Error(), attribute) || !strings.Contains(err.Error(), "a|2026") {
			t.Errorf("%s: %v", attribute, err)
		}
	}
	for attribute := range whole() {
		if attribute == "pk" {
			continue
		}
		if attribute != "expires" {
			check(attribute, read(func(i map[string]types.AttributeValue) { delete(i, attribute) }))
		}
		check(attribute, read(func(i map[string]types.AttributeValue) {
			i[attribute] = &types.AttributeValueMemberBOOL{}
		}))
	}
	for attribute, value := range map[string]types.AttributeValue{
		"version": n("0"), "count": n("1.5"), "sum_d": s("NaN"), "bucket": s("noon"),
		"last_order": s("x"), "entries": &types.AttributeValueMemberM{
			Value: map[string]types.AttributeValue{"0": n("1")},
		},
	} {
		check(attribute, read(func(i map[string]types.AttributeValue) { i[attribute] = value }))
	}
}

func TestValidate(t *testing.T) {
	client := runneltest.NewServer(t).DynamoDB()
	for _, c := range []struct {
		cfg  dynamostore.Config
		want string
	}{
		{dynamostore.Config{}, "DynamoDB is missing: want a *dynamodb.Client\n" +
			"dynamostore: Table is missing"},
		{dynamostore.Config{DynamoDB: client, Table: "a b"}, "Table: \"a b\" cannot name"},
		{dynamostore.Config{DynamoDB: client, Table: "ab"}, "Table: \"ab\" cannot name"},
		{dynamostore.Config{DynamoDB: client, Table: strings.Repeat("t", 252)}, "cannot name"},
		{dynamostore.Config{DynamoDB: client, Table: "edits", CallTimeout: -1}, "CallTimeout is -1ns"},
	} {
		if _, err := dynamostore.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	store, err := dynamostore.New(dynamostore.Config{DynamoDB: client, Table: "edits"})
	if err != nil || store.String() != "the DynamoDB table edits" {
		t.Errorf("%v, %v", store, err)
	}
}

// TestTwoTables lets workers of one application begin at the same moment with two tables, two
// workers with each. All records are in one table, and none in the other.
func TestTwoTables(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 4))
	const records = 8
	for n := range records {
		_, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String(fmt.Sprint(n)),
			Data: []byte(`{"k":"a"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for round := range 15 {
		app := fmt.Sprint("app", round)
		var workers []*consumer.Worker
		var counts [2]atomic.Int64
		for i := range 4 {
			table := i % 2
			store, err := target(server.DynamoDB(), fmt.Sprint(app, "-", table)).Open()
			if err != nil {
				t.Fatal(err)
			}
			rows, err := rollup.OpenRows(t.Context(), rollup.RowsConfig{
				Definition: rollup.Definition{
					Keys:    []rollup.Field{{Pointer: "/k"}},
					Columns: []rollup.Column{{Op: rollup.Count}},
				},
				Store: store, Kinesis: server.Kinesis(), Leases: server.DynamoDB(),
				App: app, Stream: "orders",
				OnCommit: func(c rollup.Commit) { counts[table].Add(int64(c.Records)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			w, err := consumer.New(consumer.Config{
				Stream: "orders", App: app, WorkerID: fmt.Sprint("w", i), Once: true,
				Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
				Handler: rows.Handle, Output: rows.Output(), Failover: time.Second,
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			workers = append(workers, w)
		}
		errs := make([]error, len(workers))
		var group sync.WaitGroup
		for i, w := range workers {
			group.Go(func() { errs[i] = w.Run(t.Context()) })
		}
		group.Wait()
		won := 0
		if counts[0].Load() == 0 {
			won = 1
		}
		if counts[won].Load() != records || counts[1-won].Load() != 0 {
			t.Fatalf("round %d: %d and %d records", round, counts[0].Load(), counts[1].Load())
		}
		for i, err := range errs {
			if errors.Is(err, lease.ErrOtherOutput) != (i%2 != won) || i%2 == won && err != nil {
				t.Fatalf("round %d: worker %d, beside table %d: %v", round, i, won, err)
			}
		}
	}
}
