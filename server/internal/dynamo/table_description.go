package dynamo

import (
	"encoding/json"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// tableDescription is the API's TableDescription.
type tableDescription struct {
	AttributeDefinitions      []attributeDefinition
	TableName                 string
	KeySchema                 []keySchemaElement
	TableStatus               string
	CreationDateTime          json.Number // seconds since 1970, with milliseconds
	ProvisionedThroughput     throughputDescription
	TableSizeBytes            int64
	ItemCount                 int64
	TableARN                  string              `json:"TableArn"`
	TableID                   string              `json:"TableId"`
	BillingModeSummary        *billingModeSummary `json:",omitempty"`
	DeletionProtectionEnabled bool
	GlobalSecondaryIndexes    []indexDescription `json:",omitempty"`
}

// indexDescription is the API's GlobalSecondaryIndexDescription.
type indexDescription struct {
	IndexName             string
	KeySchema             []keySchemaElement
	Projection            projectionDescription
	IndexStatus           string
	Backfilling           *bool `json:",omitempty"`
	ProvisionedThroughput throughputDescription
	IndexSizeBytes        int64
	ItemCount             int64
	IndexARN              string `json:"IndexArn"`
}

type projectionDescription struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

type attributeDefinition struct {
	AttributeName string
	AttributeType itemstore.Kind
}

type keySchemaElement struct {
	AttributeName string
	KeyType       string // HASH or RANGE
}

type throughputDescription struct {
	NumberOfDecreasesToday int64
	ReadCapacityUnits      int64
	WriteCapacityUnits     int64
}

type billingModeSummary struct {
	BillingMode string
}

// describe returns the description of a table. The server makes, alters and drops tables and
// indexes at once. Only the answers of CreateTable, UpdateTable and DeleteTable show CREATING,
// UPDATING and DELETING, because clients expect these states.
func describe(stats itemstore.Stats, status string) tableDescription {
	meta := stats.Meta
	d := tableDescription{
		TableName:   meta.Name,
		TableStatus: status,
		CreationDateTime: json.Number(
			strconv.FormatFloat(float64(meta.Created)/1000, 'f', 3, 64)),
		ProvisionedThroughput: throughputDescription{
			ReadCapacityUnits: meta.ReadCapacity, WriteCapacityUnits: meta.WriteCapacity,
		},
		TableSizeBytes:            stats.Bytes,
		ItemCount:                 stats.Items,
		TableARN:                  tableARN(meta.World, meta.Name),
		TableID:                   meta.ID,
		DeletionProtectionEnabled: meta.DeletionProtection,
	}
	if meta.BillingMode == onDemand {
		d.BillingModeSummary = &billingModeSummary{meta.BillingMode}
	}
	for _, part := range keyAttributes(&meta) {
		d.AttributeDefinitions = append(d.AttributeDefinitions,
			attributeDefinition{part.Name, part.Kind})
	}
	d.KeySchema = describeSchema(meta.Schema)
	for i, index := range meta.Indexes {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, indexDescription{
			IndexName:   index.Name,
			KeySchema:   describeSchema(index.Schema),
			Projection:  projectionDescription{index.Projection, index.Include},
			IndexStatus: "ACTIVE",
			ProvisionedThroughput: throughputDescription{
				ReadCapacityUnits: index.ReadCapacity, WriteCapacityUnits: index.WriteCapacity,
			},
			IndexSizeBytes: stats.Indexes[i].Bytes,
			ItemCount:      stats.Indexes[i].Items,
			IndexARN:       d.TableARN + "/index/" + index.Name,
		})
	}
	return d
}

func describeSchema(schema itemstore.Schema) []keySchemaElement {
	elements := []keySchemaElement{{schema.Hash.Name, "HASH"}}
	if schema.Range.Name != "" {
		elements = append(elements, keySchemaElement{schema.Range.Name, "RANGE"})
	}
	return elements
}

// described returns an answer with a description, under the operation's member name.
func described(name string, d tableDescription) ([]byte, error) {
	var a answer
	if err := a.value(name, d); err != nil {
		return nil, err
	}
	return a.bytes(), nil
}
