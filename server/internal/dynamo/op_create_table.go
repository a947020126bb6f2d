package dynamo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const maxTags = 50 // of a table ("Tagging restrictions in DynamoDB")

// createTable makes a table, which exists at once: the answer says CREATING, and later answers
// ACTIVE.
func (s *Service) createTable(ctx context.Context, call *wire.Call) ([]byte, error) {
	meta, err := s.parseTable(call)
	if err != nil {
		return nil, err
	}
	if err := s.memory.Full(); err != nil {
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
	d := describe(itemstore.Stats{
		Meta: meta, Indexes: make([]itemstore.IndexStats, len(meta.Indexes)),
	}, "CREATING")
	for i := range d.GlobalSecondaryIndexes {
		d.GlobalSecondaryIndexes[i].IndexStatus = "CREATING"
	}
	return described("TableDescription", d)
}

func (s *Service) parseTable(call *wire.Call) (itemstore.Meta, error) {
	m := parseMembers("CreateTable", call.Body)
	meta := itemstore.Meta{
		World: call.World, Name: m.tableName(), ID: newUUID(), Created: s.now().UnixMilli(),
	}
	if isARN(meta.Name) { // which the other operations accept
		m.checkName("TableName", meta.Name)
	}
	b := m.billing()
	meta.DeletionProtection, _ = m.flag("DeletionProtectionEnabled")
	meta.Tags = m.tags()
	definitions, defined := m.definitions()
	if !defined {
		m.required("AttributeDefinitions")
	}
	elements := m.keySchema()
	indexes, hasIndexes := m.newIndexes()
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
	if hasIndexes && len(indexes) == 0 {
		return meta, invalidParameter("List of GlobalSecondaryIndexes is empty")
	}
	var err error
	if meta.Schema, err = parseSchema(elements, definitions); err != nil {
		return meta, err
	}
	for _, r := range indexes {
		index, err := r.parse(definitions, meta.BillingMode)
		if err != nil {
			return meta, err
		}
		meta.Indexes = append(meta.Indexes, index)
	}
	if err := checkIndexes(meta.Indexes); err != nil {
		return meta, err
	}
	return meta, checkDefinitions(definitions, &meta)
}

// newIndexes takes GlobalSecondaryIndexes.
func (m *members) newIndexes() (requests []indexRequest, found bool) {
	list, found := m.structures("GlobalSecondaryIndexes", "GlobalSecondaryIndex")
	for _, one := range list {
		requests = append(requests, one.newIndex())
		m.absorb(one)
	}
	return requests, found
}

// tags takes Tags. The table keeps them, but no operation shows them yet.
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
