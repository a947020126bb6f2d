package mongostore_test

import (
	"log"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/runnel-stream/runnel/sink/rollup/mongostore"
)

// Rows in a collection. The store goes into rollup.RowsConfig.
func Example() {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1"))
	if err != nil {
		log.Fatal(err)
	}
	store, err := mongostore.New(mongostore.Config{
		Database: client.Database("wiki"), Collection: "edits",
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = store
}
