package dynamo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/itemstore"
)

const maxTags = 50 // of a table ("Tagging restrictions in DynamoDB")

// createTable makes a table, which is there at once: the answer says CREATING, and what is
// asked after it ACTIVE.
func (s *Service) createTable(ctx context.Context, call *awswire.Call) ([]byte, error) {
	meta, err := s.parseTable(call)
	if err != nil {
		return nil, err
	}
	_, err = s.items.CreateTable(ctx, meta)
	switch {
	case errors.Is(err, itemstore.ErrTableExists):
		return nil, fault("ResourceInUseException", "Table already exists: %s", meta.Name)
	case errors.Is(err, itemstore.ErrTooManyTables):
		return nil, fault("LimitExceededException", "Subscriber limit exceeded: There is a "+
			"limit of %d tables per subscriber: delete some", itemstore.MaxTables)
	case err != nil:
		return nil, err
	}
	s.logger.InfoContext(ctx, "table created", "table", meta.Name,
		"account", meta.World.Account, "region", meta.World.Region)
	return described("TableDescription", itemstore.Stats{Meta: meta}, "CREATING")
}

func (s *Service) parseTable(call *awswire.Call) (itemstore.Meta, error) {
	m := parseMembers(call.Body)
	meta := itemstore.Meta{
		World: call.World, Name: m.tableName(), ID: newUUID(), Created: s.now().UnixMilli(),
	}
	if strings.HasPrefix(meta.Name, "arn:") { // which the other operations take
		m.checkName("TableName", meta.Name)
	}
	b := m.billing()
	meta.DeletionProtection, _ = m.flag("DeletionProtectionEnabled")
	meta.Tags = m.tags()
	var definitions []attributeDefinition
	var elements []keySchemaElement
	if !m.decode("AttributeDefinitions", "List", &definitions) {
		m.required("AttributeDefinitions")
	}
	if !m.decode("KeySchema", "List", &elements) {
		m.required("KeySchema")
	}
	m.none("GlobalSecondaryIndexes")
	m.none("LocalSecondaryIndexes")
	m.none("StreamSpecification", `{"StreamEnabled":false}`)
	m.none("SSESpecification", `{"Enabled":false}`)
	m.none("TableClass", `"STANDARD"`)
	if err := m.check(); err != nil {
		return meta, err
	}
	meta.BillingMode = cmp.Or(b.mode, provisioned)
	meta.ReadCapacity, meta.WriteCapacity = b.read, b.write
	if err := b.check(meta.BillingMode); err != nil {
		return meta, err
	}
	if meta.BillingMode == provisioned && !b.throughput {
		return meta, validation("No provisioned throughput specified for the table")
	}
	var err error
	meta.Schema, err = parseSchema(elements, definitions)
	return meta, err
}

// parseSchema makes KeySchema and AttributeDefinitions into a schema.
func parseSchema(
	elements []keySchemaElement, definitions []attributeDefinition,
) (itemstore.Schema, error) {
	var schema itemstore.Schema
	if len(elements) < 1 || len(elements) > 2 {
		return schema, validation("1 validation error detected: Value at 'keySchema' failed to " +
			"satisfy constraint: Member must have length greater than or equal to 1 and less " +
			"than or equal to 2")
	}
	for i, part := range []*itemstore.KeyAttribute{&schema.Hash, &schema.Range}[:len(elements)] {
		want := [...]string{"HASH", "RANGE"}[i]
		if elements[i].KeyType != want {
			return schema, validation("Invalid KeySchema: element %d must be of KeyType %s",
				i+1, want)
		}
		part.Name = elements[i].AttributeName
		at := slices.IndexFunc(definitions, func(d attributeDefinition) bool {
			return d.AttributeName == part.Name
		})
		switch {
		case part.Name == "" || len(part.Name) > 255:
			return schema, validation("1 validation error detected: Value '%s' at "+
				"'keySchema.%d.member.attributeName' failed to satisfy constraint: Member must "+
				"have length between 1 and 255", part.Name, i+1)
		case at < 0:
			return schema, invalidParameter("Some index key attributes are not defined in "+
				"AttributeDefinitions. Keys: [%s]", part.Name)
		}
		part.Kind = definitions[at].AttributeType
		if !slices.Contains(orderedKinds, part.Kind) {
			return schema, validation("1 validation error detected: Value '%s' at "+
				"'attributeDefinitions.%d.member.attributeType' failed to satisfy constraint: "+
				"Member must satisfy enum value set: [B, N, S]", part.Kind, at+1)
		}
	}
	if schema.Hash.Name == schema.Range.Name {
		return schema, validation("Both the Hash Key and the Range Key element in the KeySchema " +
			"have the same name")
	}
	if len(definitions) != len(elements) {
		return schema, invalidParameter("Number of attributes in KeySchema does not exactly " +
			"match number of attributes defined in AttributeDefinitions")
	}
	return schema, nil
}

// tags takes Tags. They are kept; there is no operation yet that shows them.
func (m *members) tags() map[string]string {
	var list []struct{ Key, Value string }
	m.decode("Tags", "List", &list)
	if len(list) == 0 {
		return nil
	}
	if len(list) > maxTags {
		m.violated("Value at 'tags' failed to satisfy constraint: Member must have length less "+
			"than or equal to %d", maxTags)
	}
	tags := map[string]string{}
	for _, tag := range list {
		_, twice := tags[tag.Key]
		length := utf8.RuneCountInString(tag.Key)
		if twice || length < 1 || length > 128 || utf8.RuneCountInString(tag.Value) > 256 {
			m.violated("Value at 'tags' failed to satisfy constraint: keys must be unique and "+
				"have 1 to 128 characters, values at most 256; key: '%s'", tag.Key)
		}
		tags[tag.Key] = tag.Value
	}
	return tags
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: see crypto/rand
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
