//go:build linux

package processes_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"
)

// backup copies the rows, and returns how to restore them. Each row of a store is exact by itself,
// so its copy need not be of one moment.
func (r *rollupRun) backup() (restore func()) {
	r.t.Helper()
	switch {
	case r.isSQL():
		return r.backupSQL()
	case r.mongo != nil:
		return r.withoutWorkers(r.backupMongoDB())
	}
	return r.withoutWorkers(r.backupDynamoDB())
}

// withoutWorkers returns the way to restore a store of rows, which docs/rollup.md describes.
func (r *rollupRun) withoutWorkers(restore func()) func() {
	return func() {
		for _, w := range r.workers {
			w.stop()
		}
		restore()
		r.start("leases", "reset", "--endpoint", r.endpoint, "--dynamodb-endpoint", r.tablesAt,
			"--app", "events-by_minute", "--to", "oldest", "--yes").want(0)
		for i := range r.workers {
			r.startWorker(i)
		}
	}
}

func (r *rollupRun) backupDynamoDB() (restore func()) {
	name := aws.String("by_minute")
	scan := func() []map[string]dynamotypes.AttributeValue {
		var items []map[string]dynamotypes.AttributeValue
		pages := dynamodb.NewScanPaginator(r.tables, &dynamodb.ScanInput{
			TableName: name, ConsistentRead: aws.Bool(true),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(r.t.Context())
			if err != nil {
				r.t.Fatal(err)
			}
			items = append(items, page.Items...)
		}
		return items
	}
	saved := scan()
	return func() {
		var group errgroup.Group
		group.SetLimit(8)
		for _, item := range scan() {
			group.Go(func() error {
				key := map[string]dynamotypes.AttributeValue{"pk": item["pk"]}
				_, err := r.tables.DeleteItem(r.t.Context(), &dynamodb.DeleteItemInput{
					TableName: name, Key: key,
				})
				return err
			})
		}
		err := group.Wait()
		for _, item := range saved {
			group.Go(func() error {
				_, err := r.tables.PutItem(r.t.Context(), &dynamodb.PutItemInput{
					TableName: name, Item: item,
				})
				return err
			})
		}
		if putErr := group.Wait(); err != nil || putErr != nil {
			r.t.Fatal(err, putErr)
		}
	}
}

func (r *rollupRun) backupMongoDB() (restore func()) {
	ctx := r.t.Context()
	client, err := mongo.Connect(options.Client().ApplyURI(r.mongo.URI))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })
	rows := client.Database("test").Collection("by_minute")
	var saved []bson.D
	found, err := rows.Find(ctx, bson.D{})
	if err == nil {
		err = found.All(ctx, &saved)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		_, err := rows.DeleteMany(ctx, bson.D{})
		if err == nil {
			_, err = rows.InsertMany(ctx, saved)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// backupSQL copies the tables of one moment, and returns how to restore them in one transaction.
func (r *rollupRun) backupSQL() (restore func()) {
	tables := []string{"runnel_position", "by_minute", "by_minute_bad", "runnel_rollup"}
	var copies, restores []string
	if r.postgres != nil {
		copies = append(copies, "set transaction isolation level repeatable read")
		restores = append(restores, "lock table "+strings.Join(tables, ", ")+" in exclusive mode")
	}
	for _, table := range tables {
		copies = append(copies, "create table backup_"+table+" as select * from "+table)
		restores = append(restores, "delete from "+table,
			"insert into "+table+" select * from backup_"+table)
	}
	inOne := func(statements []string) {
		r.t.Helper()
		var err error
		for range 20 {
			if err = r.inOne(statements); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // the database is restarting, or there was a deadlock
		}
		r.t.Fatal(err)
	}
	inOne(copies)
	return func() { inOne(restores) }
}

// inOne runs statements in one transaction.
func (r *rollupRun) inOne(statements []string) error {
	tx, err := r.db.BeginTx(r.t.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range statements {
		if _, err := tx.ExecContext(r.t.Context(), text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return tx.Commit()
}
