package dynamo

import (
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// maxIndexes is the largest number of a table's indexes, and maxIncluded the largest number of
// attributes that they include ("Quotas in Amazon DynamoDB": 20, and 100 over all indexes of a
// table).
const (
	maxIndexes  = 20
	maxIncluded = 100
)

// indexRequest is the request for a new index.
type indexRequest struct {
	index    itemstore.Index // without kinds
	elements []keySchemaElement
	billing  billing
}

// indexName takes IndexName.
func (m *members) indexName() string {
	name, found := m.text("IndexName")
	if !found {
		m.required("IndexName")
		return ""
	}
	m.checkName("IndexName", name)
	return name
}

// newIndex takes the members of a new index.
func (m *members) newIndex() indexRequest {
	var r indexRequest
	r.index.Name = m.indexName()
	r.elements = m.keySchema()
	r.billing = m.throughput()
	projection := m.structure("Projection", "Projection")
	if projection == nil {
		m.required("Projection")
		return r
	}
	r.index.Projection = projection.enum("ProjectionType", "", itemstore.ProjectAll,
		itemstore.ProjectKeys, itemstore.ProjectSome)
	projection.decode("NonKeyAttributes", "List", &r.index.Include)
	m.absorb(projection)
	return r
}

// parse converts the request into an index of a table with this billing mode.
func (r indexRequest) parse(
	definitions []attributeDefinition, mode string,
) (itemstore.Index, error) {
	index := r.index
	var err error
	if index.Schema, err = parseSchema(r.elements, definitions); err != nil {
		return index, err
	}
	some := index.Projection == itemstore.ProjectSome
	switch {
	case index.Projection == "":
		return index, invalidParameter("Unknown ProjectionType: null")
	case some && len(index.Include) == 0:
		return index, invalidParameter("ProjectionType is INCLUDE, but NonKeyAttributes is not " +
			"specified")
	case !some && index.Include != nil:
		return index, invalidParameter("ProjectionType is %s, but NonKeyAttributes is specified",
			index.Projection)
	}
	for i, name := range index.Include {
		if slices.Contains(index.Include[:i], name) {
			return index, invalidParameter("Duplicate element in NonKeyAttributes: %s", name)
		}
	}
	if err := r.billing.checkIndex(mode, index.Name); err != nil {
		return index, err
	}
	index.ReadCapacity, index.WriteCapacity = r.billing.read, r.billing.write
	return index, nil
}

// checkIndexes returns the fault of a table's indexes as a whole.
func checkIndexes(indexes []itemstore.Index) error {
	if len(indexes) > maxIndexes {
		return invalidParameter("GlobalSecondaryIndex count exceeds the per-table limit of %d",
			maxIndexes)
	}
	included := 0
	names := map[string]bool{}
	for _, index := range indexes {
		if names[index.Name] {
			return invalidParameter("Duplicate index name: %s", index.Name)
		}
		names[index.Name] = true
		included += len(index.Include)
	}
	if included > maxIncluded { // the text is guessed
		return invalidParameter("Number of NonKeyAttributes in all indexes of the table exceeds "+
			"the limit of %d", maxIncluded)
	}
	return nil
}
