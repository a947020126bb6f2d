package rollup_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// Two batches of a shard are merged into a table of SQLite. A consumer.Worker does this with
// Config.Sink.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:rollup?mode=memory&cache=shared")
	check(err)
	defer db.Close()
	r, err := rollup.New(rollup.Config{
		Definition: edits, DB: db, Dialect: rollup.SQLite, Table: "by_minute",
		App: "edits-by-minute", Stream: "edits",
	})
	check(err)
	check(r.Prepare(ctx))
	shard := sink.Shard{
		Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	}
	w, err := r.Open(ctx, shard)
	check(err)
	for n, data := range []string{
		`{"channel": "de", "time": "2026-01-02T03:04:05Z", "added": 12, "user": "anna"}`,
		`{"channel": "de", "time": "2026-01-02T03:04:06Z", "added": 30, "user": "ben"}`,
	} {
		at := runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))}
		_, err := w.Write(ctx, sink.Batch{Through: at, Records: []runnel.Record{{
			Data: []byte(data), ShardID: shard.ID, Position: at, ArrivalTime: time.UnixMilli(0),
		}}})
		check(err)
	}
	var bucket, user string
	var count, added int
	check(db.QueryRowContext(ctx, "select bucket, count, sum_added, last_user from by_minute").
		Scan(&bucket, &count, &added, &user))
	fmt.Println(bucket, count, added, user)
	// Output:
	// 2026-01-02T03:04:00.000Z 2 42 ben
}
