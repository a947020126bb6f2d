package dynamo

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// keyOf converts a request's Key into the table's.
func keyOf(schema itemstore.Schema, given itemstore.Item) (itemstore.Key, error) {
	want := 1
	if schema.Range.Name != "" {
		want = 2
	}
	key, err := schema.Key(given)
	if err != nil || len(given) != want {
		return key, validation("The provided key element does not match the schema")
	}
	return key, keyFault(schema, key)
}

// keyIn returns the key of an item for a put.
func keyIn(schema itemstore.Schema, item itemstore.Item) (itemstore.Key, error) {
	for _, part := range []itemstore.KeyAttribute{schema.Hash, schema.Range} {
		value, found := item[part.Name]
		switch {
		case part.Name == "":
		case !found:
			return itemstore.Key{}, invalidParameter("Missing the key %s in the item", part.Name)
		case value.Kind() != part.Kind:
			return itemstore.Key{}, invalidParameter(
				"Type mismatch for key %s expected: %s actual: %s",
				part.Name, part.Kind, value.Kind())
		}
	}
	key, err := schema.Key(item)
	if err != nil {
		return key, err // unreachable
	}
	return key, keyFault(schema, key)
}

// keyFault checks the sizes of a key's values: not empty, and not above the limits.
func keyFault(schema itemstore.Schema, key itemstore.Key) error {
	if fault := emptyKey(schema.Hash.Name, key.Hash); fault != nil {
		return fault
	}
	if itemstore.ValueSize(key.Hash) > itemstore.MaxHashKey {
		return invalidParameter("Size of hashkey has exceeded the maximum size limit of%d bytes",
			itemstore.MaxHashKey)
	}
	if key.Range == nil {
		return nil
	}
	if fault := emptyKey(schema.Range.Name, key.Range); fault != nil {
		return fault
	}
	if itemstore.ValueSize(key.Range) > itemstore.MaxRangeKey {
		return invalidParameter("Aggregated size of all range keys has exceeded the size limit "+
			"of %d bytes", itemstore.MaxRangeKey)
	}
	return nil
}

func emptyKey(name string, value itemstore.Value) *wire.Error {
	kind := "string"
	switch v := value.(type) {
	case itemstore.String:
		if v != "" {
			return nil
		}
	case itemstore.Binary:
		if v != "" {
			return nil
		}
		kind = "binary"
	default:
		return nil
	}
	return validation("One or more parameter values are not valid. The AttributeValue for a "+
		"key attribute cannot contain an empty %s value. Key: %s", kind, name)
}

// scalarKeys refuses paths into key attributes, which are all scalars.
func (s *Service) scalarKeys(ctx context.Context, t *itemstore.Table, f *form) error {
	if len(f.nested) == 0 { // the common case
		return nil
	}
	refused := func(schema itemstore.Schema, what string) error {
		for _, name := range []string{schema.Hash.Name, schema.Range.Name} {
			if name != "" && slices.Contains(f.nested, name) {
				return validation("Key attributes must be scalars; list random access '[]' and "+
					"map lookup '.' are not allowed: %s: %s", what, name)
			}
		}
		return nil
	}
	if err := refused(t.Schema(), "Key"); err != nil {
		return err
	}
	stats, err := s.items.Describe(ctx, t)
	if err != nil {
		return itemFault(err, "")
	}
	for _, index := range stats.Meta.Indexes {
		if err := refused(index.Schema, "IndexKey"); err != nil {
			return err
		}
	}
	return nil
}
