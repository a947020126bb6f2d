package keytable

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/runneltest"
)

// A client without retries recognises every kind of change after a lost answer: the change is made
// once and is no error.
func TestLostAnswers(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		client := dynamodb.NewFromConfig(server.AWSConfig(), func(o *dynamodb.Options) {
			o.Retryer = aws.NopRetryer{}
		})
		table := open(t, client, small)
		move := MoveConfig{Kinesis: server.Kinesis(), Stream: "orders", WithoutApps: true}
		x := []Move{{Name: "x", From: keyOf(64), To: keyOf(5)}}
		for _, step := range []struct {
			name, faults string
			do           func() error
		}{
			{"assign", "1", func() error { _, err := table.Assign(t.Context(), 1, "x", "y"); return err }},
			{"key", "1", func() error { _, err := table.Key(t.Context(), "z"); return err }},
			{"release", "1", func() error { return table.Release(t.Context(), "y", "z") }},
			{"begin", "1", func() error { return table.begin(t.Context(), x) }},
			{"abort", "1", func() error { return table.Abort(t.Context(), "x") }},
			{"move", "1", func() error { return table.Move(t.Context(), move, x) }},
			{"end", "2", func() error {
				return table.Move(t.Context(), move, []Move{{Name: "x", From: keyOf(5), To: keyOf(6)}})
			}},
		} {
			before := server.FaultCounts()["TransactWriteItems:lose-answer"]
			if err := server.SetFaults("TransactWriteItems:lose-answer@" + step.faults); err != nil {
				t.Fatal(err)
			}
			if err := step.do(); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			if n := server.FaultCounts()["TransactWriteItems:lose-answer"] - before; n != 1 {
				t.Errorf("%s: %d answers were lost", step.name, n)
			}
		}
		sameAsScanned(t, table)
		if version, lines := describe(table); version != 9 || len(lines) != 1 || lines[0] != "x=6/1" {
			t.Errorf("version %d: %v", version, lines)
		}
	}, runneltest.WithStream("orders", 1))
}

// A session begins although the answer to its row's making is lost and the client tries again.
func TestJoinLosesItsAnswer(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if err := server.SetFaults("PutItem:lose-answer@1"); err != nil {
			t.Fatal(err)
		}
		session, err := table.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if server.FaultCounts()["PutItem:lose-answer"] != 1 {
			t.Error("no answer was lost")
		}
		if _, done, err := session.Use(t.Context(), "x"); err != nil {
			t.Error(err)
		} else {
			done()
		}
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}, runneltest.WithStream("orders", 1))
}
