// Command partitionkey shows what the choice of the partition key decides. A service like GitHub
// writes events of repositories into an outbox: created, commits, destroyed. runnel relays them
// into a stream of four shards and archives that. A reader then keeps a cache of the repositories,
// shard after shard, and counts the commits of repositories that it does not know.
//
// With the repository as the key of all its events, there is none. With a commit's own hash as the
// key of a commit, most commits are read before their repository was created or after it was
// destroyed. docs/outbox.md explains it.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
)

const (
	repositories = 200
	commits      = 10 // of each repository
)

// event is a record's data.
type event struct {
	Type       string `json:"type"` // created, commit or destroyed
	Repository string `json:"repository"`
	Commit     string `json:"commit,omitempty"`
}

func main() {
	slog.SetLogLoggerLevel(slog.LevelError)
	byRepository := func(e event) string { return e.Repository }
	byCommit := func(e event) string {
		if e.Type == "commit" {
			return e.Commit
		}
		return e.Repository
	}
	fmt.Printf("by repository: %d of %d commits belong to no repository\n", damage(byRepository),
		repositories*commits)
	fmt.Printf("by commit:     %d of %d commits belong to no repository\n", damage(byCommit),
		repositories*commits)
}

// damage sends the events through an outbox, a stream and an archive, and returns how many commits
// a reader of the archive cannot place.
func damage(key func(event) string) (orphans int) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partitionkey")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)"+
		"&_txlock=immediate")
	check(err)
	defer func() { check(db.Close()) }()
	table := outbox.Table{}
	check(outbox.Migrate(ctx, outbox.SQLite(db), table))
	write(ctx, db, table, key)

	server, err := runneltest.Start(ctx, runneltest.WithStream("events", 4))
	check(err)
	defer func() { check(server.Close()) }()
	relay, err := outbox.New(outbox.Config{
		DB: outbox.SQLite(db), Once: true,
		Producer: producer.Config{Stream: "events", Kinesis: server.Kinesis()},
	})
	check(err)
	check(relay.Run(ctx))
	return count(ctx, server, filepath.Join(dir, "archive"))
}

// write commits the life of each repository, one event after the other.
func write(ctx context.Context, db *sql.DB, table outbox.Table, key func(event) string) {
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	put := func(e event) {
		data, err := json.Marshal(e)
		check(err)
		row := outbox.Row{Key: key(e), Data: data}
		check(table.Insert(ctx, outbox.SQL(tx, outbox.DialectSQLite), row))
	}
	for r := range repositories {
		name := fmt.Sprintf("team/project-%d", r)
		put(event{Type: "created", Repository: name})
		for c := range commits {
			put(event{Type: "commit", Repository: name, Commit: fmt.Sprintf("%08x", r*commits+c)})
		}
		put(event{Type: "destroyed", Repository: name})
	}
	check(tx.Commit())
}

// count archives the stream and replays the archive, shard after shard.
func count(ctx context.Context, server *runneltest.Server, dir string) (orphans int) {
	store, err := archive.NewDirStore(dir)
	check(err)
	sink, err := archive.New(archive.Config{Store: store})
	check(err)
	worker, err := consumer.New(consumer.Config{
		Stream: "events", App: "archive", Once: true, Sink: sink,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
	})
	check(err)
	check(worker.Run(ctx))
	reader := archive.NewReader(store)
	streams, err := reader.Streams(ctx)
	check(err)
	shards, err := reader.Shards(ctx, streams[0])
	check(err)
	known := map[string]bool{}
	for _, shard := range shards {
		for record, err := range reader.Records(ctx, shard) {
			check(err)
			var e event
			check(json.Unmarshal(record.Data, &e))
			switch e.Type {
			case "created":
				known[e.Repository] = true
			case "destroyed":
				delete(known, e.Repository)
			case "commit":
				if !known[e.Repository] {
					orphans++
				}
			}
		}
	}
	return orphans
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
