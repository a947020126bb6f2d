// Command current keeps the current state of things: the newest value of each key. A record without
// data deletes its key. The order of a key's records is that of the stream, so no old value comes
// back.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"

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
	_, err = db.ExecContext(ctx, "create table if not exists things "+
		"(key text primary key, value text)")
	check(err)
	sink, err := sqlsink.New(sqlsink.Config{
		DB: db, Dialect: sqlsink.SQLite(), App: "things", Handler: keep,
	})
	check(err)
	check(sink.Migrate(ctx))
	worker, err := consumer.New(consumer.Config{
		Stream: "things", App: "things", Sink: sink, Once: len(os.Args) > 2,
		Kinesis: kinesis.NewFromConfig(aws), DynamoDB: dynamodb.NewFromConfig(aws),
	})
	check(err)
	check(worker.Run(ctx)) // until interrupted; hands its shards over
}

// keep writes the last record of each key in the batch, since it replaces those before it.
func keep(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
	newest := map[string][]byte{}
	for _, record := range batch.Records {
		newest[record.PartitionKey] = record.Data
	}
	for key, value := range newest {
		var err error
		if len(value) == 0 {
			_, err = tx.ExecContext(ctx, "delete from things where key = ?", key)
		} else {
			_, err = tx.ExecContext(ctx, "insert into things values (?, ?) "+
				"on conflict do update set value = excluded.value", key, string(value))
		}
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
