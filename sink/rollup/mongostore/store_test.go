package mongostore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/mongotest"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/mongostore"
	"github.com/runnel-stream/runnel/sink/rollup/rolluptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, uri string) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).
		SetServerSelectionTimeout(2 * time.Second).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return client.Database("test")
}

// target is a collection of a database.
func target(database *mongo.Database, collection string) rolluptest.Target {
	return rolluptest.Target{
		Open: func() (rollup.RowStore, error) {
			return mongostore.New(mongostore.Config{Database: database, Collection: collection})
		},
		Bad: func(ctx context.Context) (map[string]string, error) {
			cursor, err := database.Collection(collection+"_bad").Find(ctx, bson.D{})
			if err != nil {
				return nil, err
			}
			var found []struct {
				ID   string `bson:"_id"`
				Data []byte
			}
			if err := cursor.All(ctx, &found); err != nil {
				return nil, err
			}
			bad := map[string]string{}
			for _, b := range found {
				bad[b.ID] = string(b.Data)
			}
			return bad, nil
		},
	}
}

func TestSuite(t *testing.T) {
	database := connect(t, mongotest.New(t).URI)
	var collections atomic.Int64
	rolluptest.Run(t, func(*testing.T) rolluptest.Target {
		return target(database, fmt.Sprint("edits", collections.Add(1)))
	})
}

// TestFleet kills the database once, too.
func TestFleet(t *testing.T) {
	mongodb := mongotest.New(t)
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2),
		runneltest.WithStreamDelay(-1))
	stream := rolluptest.Stream{
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Disturb: func() {
			mongodb.Kill()
			mongodb.Start()
		},
	}
	rolluptest.Fleet(t, stream, target(connect(t, mongodb.URI), "edits"))
}

var setup = rollup.Setup{App: "a", Stream: "s", Definition: rollup.Definition{
	Keys: []rollup.Field{{Pointer: "/k"}}, Bucket: time.Hour,
	Columns: []rollup.Column{
		{Op: rollup.Count},
		{Op: rollup.Sum, Field: rollup.Field{Pointer: "/d"}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/l"}},
	},
}}

func prepare(t *testing.T, database *mongo.Database) rollup.RowStore {
	t.Helper()
	store, err := target(database, "edits").Open()
	if err == nil {
		err = store.Prepare(t.Context(), setup)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestErrors shows that outages pass.
func TestErrors(t *testing.T) {
	server := mongotest.New(t)
	store := prepare(t, connect(t, server.URI))
	row := rollup.StoredRow{Key: "a", Version: 1, Row: rollup.Row{
		Keys: []rollup.Value{{Text: "a"}}, Values: make([]rollup.Value, 3),
	}, Entries: map[string]string{"0": "end"}}
	check := func(what string, ctx context.Context) {
		t.Helper()
		_, read := store.Read(ctx, []string{"a"})
		for _, err := range []error{read, store.Write(ctx, row, 0), store.Write(ctx, row, 1)} {
			if err == nil || errors.Is(err, rollup.ErrLasting) || errors.Is(err, rollup.ErrConflict) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	check("a time-out", ctx)
	cancel()
	server.Resume()
	server.Kill()
	for range 3 {
		check("no server", t.Context())
	}
	server.Start()
	if err := store.Write(t.Context(), row, 0); err != nil && !errors.Is(err, rollup.ErrConflict) {
		t.Error(err)
	}
	_, err := store.Read(t.Context(), []string{"a"})
	if err != nil {
		t.Error(err)
	}
}

// TestDamaged reads documents that a store does not write.
func TestDamaged(t *testing.T) {
	database := connect(t, mongotest.New(t).URI)
	store, key := prepare(t, database), "a|2026-01-02T03:00:00Z"
	whole := func() bson.M {
		return bson.M{
			"_id": key, "k": "a", "bucket": time.UnixMilli(0), "count": int64(1), "sum_d": 1.5,
			"last_l": "", "version": int64(1), "expires": time.UnixMilli(7),
			"last_order": rollup.Order{Shard: "s"}.String(), "entries": bson.M{},
		}
	}
	read := func(change func(bson.M)) error {
		document := whole()
		change(document)
		_, err := database.Collection("edits").ReplaceOne(t.Context(), bson.M{"_id": key}, document,
			options.Replace().SetUpsert(true))
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Read(t.Context(), []string{key})
		return err
	}
	if err := read(func(bson.M) {}); err != nil {
		t.Error(err)
	}
	check := func(field string, err error) {
		t.Helper()
		if !errors.Is(err, rollup.ErrDamaged) || !errors.Is(err, rollup.ErrLasting) ||
			!strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for field := range whole() {
		if field == "_id" {
			continue
		}
		if field != "expires" {
			check(field, read(func(d bson.M) { delete(d, field) }))
		}
		check(field, read(func(d bson.M) { d[field] = true }))
	}
	for field, value := range map[string]any{
		"version": int64(0), "count": 1.5, "last_order": "x", "entries": bson.M{"0": 1},
	} {
		check(field, read(func(d bson.M) { d[field] = value }))
	}
}

// TestIndex makes the index of rows that expire.
func TestIndex(t *testing.T) {
	database := connect(t, mongotest.New(t).URI)
	store, expiring := prepare(t, database), setup
	expiring.Expires = true
	for range 2 {
		if err := store.Prepare(t.Context(), expiring); err != nil {
			t.Fatal(err)
		}
	}
	indexes, err := database.Collection("edits").Indexes().ListSpecifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes {
		if index.ExpireAfterSeconds != nil && *index.ExpireAfterSeconds == 0 {
			return
		}
	}
	t.Errorf("no index expires documents: %+v", indexes)
}

func TestValidate(t *testing.T) {
	database := connect(t, "mongodb://127.0.0.1:1")
	for _, c := range []struct {
		cfg  mongostore.Config
		want string
	}{
		{mongostore.Config{}, "Database is missing: want a *mongo.Database\n" +
			"mongostore: Collection is missing"},
		{
			mongostore.Config{Database: database, Collection: "c", CallTimeout: -1},
			"CallTimeout is -1ns",
		},
	} {
		if _, err := mongostore.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	store, err := mongostore.New(mongostore.Config{Database: database, Collection: "edits"})
	if err != nil || store.String() != "the MongoDB collection test.edits" {
		t.Errorf("%v, %v", store, err)
	}
}
