package dynamo

import (
	"context"
	"sort"

	"github.com/runnel-stream/runnel/internal/wire"
)

const maxListed = 100 // tables in one answer

// listTables returns the names of the world's tables, ascending.
func (s *Service) listTables(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("ListTables", call.Body)
	start, hasStart := m.text("ExclusiveStartTableName")
	if hasStart {
		m.checkName("ExclusiveStartTableName", start)
	}
	limit, hasLimit := m.within("Limit", 1, maxListed)
	if !hasLimit {
		limit = maxListed
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	names, err := s.items.Names(ctx, call.World)
	if err != nil {
		return nil, err
	}
	if hasStart {
		names = names[sort.SearchStrings(names, start+"\x00"):]
	}
	var a answer
	more := int64(len(names)) > limit
	if more {
		names = names[:limit]
	}
	a.name("TableNames")
	a.json = appendList(a.json, names, appendText)
	if more {
		a.name("LastEvaluatedTableName")
		a.json = appendText(a.json, names[len(names)-1])
	}
	return a.bytes(), nil
}
