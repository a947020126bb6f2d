package cli_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestRollupsOfOneApp starts two rollups of one application into two tables at the same moment. One
// has all records in its table. The other one ends with 2, names both tables, and has none.
func TestRollupsOfOneApp(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("edits", 4))
	for n := range 8 {
		_, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("edits"), PartitionKey: aws.String(fmt.Sprint(n)),
			Data: []byte(`{"k":"a"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for round := range 10 {
		tables := [2]string{fmt.Sprint("left", round), fmt.Sprint("right", round)}
		var statuses [2]int
		var said [2]string
		var group sync.WaitGroup
		for i, table := range tables {
			group.Go(func() {
				statuses[i], _, said[i] = clitest.Run(ctx, "rollup", "--endpoint",
					server.Endpoint(), "--stream", "edits", "--app", fmt.Sprint("app", round),
					"--dynamodb", table, "--key", "/k", "--count", "--once")
			})
		}
		group.Wait()
		won := 0
		if statuses[0] != 0 {
			won = 1
		}
		lost := 1 - won
		if statuses[won] != 0 || statuses[lost] != 2 {
			t.Fatalf("round %d: %v\n%s\n%s", round, statuses, said[0], said[1])
		}
		want := fmt.Sprintf("fills the DynamoDB table %s, so the DynamoDB table %s would",
			tables[won], tables[lost])
		if !strings.Contains(said[lost], want) || !strings.Contains(said[won], "8 records") {
			t.Fatalf("round %d: want %q\n%s\n%s", round, want, said[won], said[lost])
		}
	}
}

// TestRollupIntoADeletedTable deletes the table of a rollup. The next command ends with 2 and says
// so. A new table would begin in the middle.
func TestRollupIntoADeletedTable(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("edits", 1))
	_, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("edits"), PartitionKey: aws.String("1"), Data: []byte(`{"k":"a"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rollup := func() (int, string) {
		status, _, said := clitest.Run(ctx, "rollup", "--endpoint", server.Endpoint(), "--stream",
			"edits", "--dynamodb", "counts", "--key", "/k", "--count", "--once")
		return status, said
	}
	if status, said := rollup(); status != 0 {
		t.Fatal(status, said)
	}
	_, err = server.DynamoDB().DeleteTable(ctx, &dynamodb.DeleteTableInput{
		TableName: aws.String("counts"),
	})
	if err != nil {
		t.Fatal(err)
	}
	status, said := rollup()
	if status != 2 || !strings.Contains(said, "prepare the DynamoDB table counts: application "+
		"edits-counts has filled it, and its setup is gone") {
		t.Errorf("status %d: %s", status, said)
	}
}
