// Command balance adds the payments of a stream to the balances of their accounts. Each payment
// counts once, whenever it is killed and however many of it run.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	_ "modernc.org/sqlite"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	aws, err := config.LoadDefaultConfig(ctx)
	check(err)
	db, err := sql.Open("sqlite", "file:"+os.Args[1]+"?_pragma=busy_timeout(10000)")
	check(err)
	_, err = db.ExecContext(ctx, "create table if not exists balance "+
		"(account text primary key, amount int)")
	check(err)
	sink, err := sqlsink.New(sqlsink.Config{
		DB: db, Dialect: sqlsink.SQLite(), App: "balances", Handler: pay,
		Poison: sqlsink.DeadLetter,
	})
	check(err)
	check(sink.Migrate(ctx))
	worker, err := consumer.New(consumer.Config{
		Stream: "payments", App: "balances", Sink: sink, Once: len(os.Args) > 2,
		Kinesis: kinesis.NewFromConfig(aws), DynamoDB: dynamodb.NewFromConfig(aws),
	})
	check(err)
	check(worker.Run(ctx)) // until interrupted; hands its shards over
}

// pay runs in the transaction that moves the shard's position.
func pay(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
	for _, payment := range batch.Records {
		amount, err := strconv.Atoi(string(payment.Data))
		if err != nil {
			return err // after five tries the payment goes to the table runnel_dead
		}
		_, err = tx.ExecContext(ctx, "insert into balance values (?, ?) "+
			"on conflict do update set amount = amount + excluded.amount",
			payment.PartitionKey, amount)
		if err != nil {
			return err
		}
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
