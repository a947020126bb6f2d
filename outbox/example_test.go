package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/runnel-stream/runnel/outbox"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// An order and its event are committed together.
func ExampleTable_Insert() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:orders?mode=memory&_txlock=immediate")
	check(err)
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	box := outbox.Table{}
	statements, err := box.Schema(outbox.DialectSQLite)
	check(err)
	for _, text := range append(statements, "create table orders (id text, state text)") {
		_, err := db.ExecContext(ctx, text)
		check(err)
	}

	tx, err := db.BeginTx(ctx, nil)
	check(err)
	_, err = tx.ExecContext(ctx, "insert into orders values ('order-17', 'paid')")
	check(err)
	check(box.Insert(ctx, outbox.SQL(tx, outbox.DialectSQLite), outbox.Row{
		Key: "order-17", Data: []byte(`{"event":"paid"}`),
	}))
	check(tx.Commit())

	var key, data string
	check(db.QueryRowContext(ctx, "select partition_key, record_data from outbox").Scan(&key, &data))
	fmt.Println(key, data)
	// Output: order-17 {"event":"paid"}
}
