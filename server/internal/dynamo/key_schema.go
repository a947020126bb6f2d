package dynamo

import (
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// definitions takes AttributeDefinitions; found is true for an empty list too.
func (m *members) definitions() (list []attributeDefinition, found bool) {
	found = m.decode("AttributeDefinitions", "List", &list)
	for i, d := range list {
		if !slices.Contains(orderedKinds, d.AttributeType) {
			m.violated("Value '%s' at '%s.%d.member.attributeType' failed to satisfy "+
				"constraint: Member must satisfy enum value set: [B, N, S]",
				d.AttributeType, m.path("AttributeDefinitions"), i+1)
		}
	}
	return list, found
}

// keySchema takes KeySchema.
func (m *members) keySchema() []keySchemaElement {
	var elements []keySchemaElement
	if !m.decode("KeySchema", "List", &elements) {
		m.required("KeySchema")
		return nil
	}
	at := m.path("KeySchema")
	if len(elements) < 1 || len(elements) > 2 {
		m.violated("Value at '%s' failed to satisfy constraint: Member must have length greater "+
			"than or equal to 1 and less than or equal to 2", at)
	}
	for i, element := range elements {
		if element.AttributeName == "" || len(element.AttributeName) > 255 {
			m.violated("Value '%s' at '%s.%d.member.attributeName' failed to satisfy "+
				"constraint: Member must have length between 1 and 255",
				element.AttributeName, at, i+1)
		}
		if element.KeyType != "HASH" && element.KeyType != "RANGE" {
			m.violated("Value '%s' at '%s.%d.member.keyType' failed to satisfy constraint: "+
				"Member must satisfy enum value set: [HASH, RANGE]", element.KeyType, at, i+1)
		}
	}
	return elements
}

// parseSchema converts a KeySchema into a schema, with the kinds of the definitions.
func parseSchema(
	elements []keySchemaElement, definitions []attributeDefinition,
) (itemstore.Schema, error) {
	var schema itemstore.Schema
	var missing []string
	parts := []*itemstore.KeyAttribute{&schema.Hash, &schema.Range}[:len(elements)]
	for i, part := range parts {
		part.Name = elements[i].AttributeName
		at := slices.IndexFunc(definitions, func(d attributeDefinition) bool {
			return d.AttributeName == part.Name
		})
		if at < 0 {
			missing = append(missing, part.Name)
			continue
		}
		part.Kind = definitions[at].AttributeType
	}
	switch {
	case missing != nil:
		return schema, invalidParameter("Some index key attributes are not defined in "+
			"AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]",
			strings.Join(missing, ", "), strings.Join(definedNames(definitions), ", "))
	case schema.Hash.Name == schema.Range.Name:
		return schema, validation("Both the Hash Key and the Range Key element in the KeySchema " +
			"have the same name")
	case elements[0].KeyType != "HASH":
		return schema, validation("Invalid KeySchema: The first KeySchemaElement is not a HASH " +
			"key type")
	case len(elements) == 2 && elements[1].KeyType != "RANGE":
		return schema, validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE " +
			"key type")
	}
	return schema, nil
}

func definedNames(definitions []attributeDefinition) []string {
	names := make([]string, len(definitions))
	for i, d := range definitions {
		names[i] = d.AttributeName
	}
	return names
}

// keyAttributes returns the attributes of the keys of a table and its indexes, each once.
func keyAttributes(meta *itemstore.Meta) []itemstore.KeyAttribute {
	var parts []itemstore.KeyAttribute
	take := func(schema itemstore.Schema) {
		for _, part := range []itemstore.KeyAttribute{schema.Hash, schema.Range} {
			if part.Name != "" && !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	take(meta.Schema)
	for _, index := range meta.Indexes {
		take(index.Schema)
	}
	return parts
}

// checkDefinitions refuses definitions without a key, and an attribute of two kinds.
func checkDefinitions(definitions []attributeDefinition, meta *itemstore.Meta) error {
	used := map[string]itemstore.Kind{}
	for _, part := range keyAttributes(meta) {
		if kind, twice := used[part.Name]; twice && kind != part.Kind {
			return invalidParameter("Attribute %s is of type %s in one key and of type %s in "+
				"another", part.Name, kind, part.Kind) // guessed
		}
		used[part.Name] = part.Kind
	}
	seen := map[string]bool{}
	for _, d := range definitions {
		if seen[d.AttributeName] {
			return validation("Attribute Name is duplicated: %s", d.AttributeName)
		}
		seen[d.AttributeName] = true
		kind, isUsed := used[d.AttributeName]
		switch {
		case !isUsed && len(meta.Indexes) == 0:
			return invalidParameter("Number of attributes in KeySchema does not exactly match " +
				"number of attributes defined in AttributeDefinitions")
		case !isUsed:
			return invalidParameter("Some AttributeDefinitions are not used. "+
				"AttributeDefinitions: [%s], keys used: [%s]",
				strings.Join(definedNames(definitions), ", "),
				strings.Join(sortedKeys(used), ", "))
		case kind != d.AttributeType:
			return invalidParameter("Attribute %s is of type %s in the table's keys, and not of "+
				"type %s", d.AttributeName, kind, d.AttributeType) // guessed
		}
	}
	return nil
}
