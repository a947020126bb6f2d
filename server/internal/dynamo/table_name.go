package dynamo

import (
	"context"
	"errors"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// tableName takes TableName: a name, or the table's ARN.
func (m *members) tableName() string {
	name, found := m.text("TableName")
	if !found {
		m.required("TableName")
		return ""
	}
	if !isARN(name) {
		m.checkName("TableName", name)
	}
	return name
}

// checkName records the faults of a table's name ("Naming rules … in Amazon DynamoDB").
func (m *members) checkName(member, name string) {
	constraint := ""
	switch {
	case len(name) < 3:
		constraint = "Member must have length greater than or equal to 3"
	case len(name) > 255:
		constraint = "Member must have length less than or equal to 255"
	case strings.ContainsFunc(name, func(r rune) bool {
		return r > 'z' || !isWord(byte(r)) && r != '.' && r != '-'
	}):
		constraint = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
	default:
		return
	}
	m.violated("Value '%s' at '%s' failed to satisfy constraint: %s", name, m.path(member),
		constraint)
}

// table looks a table up. missing makes the answer for a missing table.
func (s *Service) table(
	ctx context.Context, world wire.World, name string, missing func(string) *wire.Error,
) (*itemstore.Table, error) {
	t, err := s.items.Table(ctx, world, baseName(world, name))
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, missing(name)
	}
	return t, err
}

// baseName returns the name in an ARN of the world; it returns another text unchanged.
func baseName(world wire.World, name string) string {
	if !isARN(name) {
		return name
	}
	return strings.TrimPrefix(name, tableARN(world, ""))
}

func isARN(name string) bool { return strings.HasPrefix(name, "arn:") }

// missingTable is the answer of the operations on items for a missing table.
func missingTable(string) *wire.Error {
	return fault("ResourceNotFoundException", "Requested resource not found")
}

// tableARN returns the ARN for a table's name. The table need not exist.
func tableARN(world wire.World, name string) string {
	partition := "aws"
	switch {
	case strings.HasPrefix(world.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(world.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return "arn:" + partition + ":dynamodb:" + world.Region + ":" + world.Account +
		":table/" + name
}
