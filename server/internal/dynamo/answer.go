package dynamo

import (
	"encoding/json"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// answer builds a JSON object. The zero value is the empty object.
type answer struct{ json []byte }

func (a *answer) name(name string) {
	if len(a.json) == 0 {
		a.json = append(a.json, '{')
	} else {
		a.json = append(a.json, ',')
	}
	a.json = append(appendText(a.json, name), ':')
}

// item adds an item, unless it is nil.
func (a *answer) item(name string, item itemstore.Item) {
	if item != nil {
		a.name(name)
		a.json = appendItem(a.json, item)
	}
}

func (a *answer) items(name string, items []itemstore.Item) {
	a.name(name)
	a.json = appendList(a.json, items, appendItem)
}

func (a *answer) integer(name string, n int) {
	a.name(name)
	a.json = strconv.AppendInt(a.json, int64(n), 10)
}

// value adds v as encoding/json encodes it.
func (a *answer) value(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a.name(name)
	a.json = append(a.json, text...)
	return nil
}

func (a *answer) bytes() []byte {
	if len(a.json) == 0 {
		return []byte("{}")
	}
	return append(a.json, '}')
}
