package interop

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// shrink makes a difference's request smaller for the reader, as long as the endpoints differ in
// the same way.
func (r *rivals) shrink(one *difference) {
	all := r.found
	defer func() { r.found = all }()
	tries := 300 // each try makes some ten requests
	for again := true; again; {
		again = false
		for body := range smaller(one.request.body) {
			if tries--; tries < 0 {
				return
			}
			q := one.request
			q.body = withoutUnused(body)
			if next := r.differs(q, one); next != nil {
				*one, again = *next, true
				break
			}
		}
	}
}

// differs makes the request again, with the same items before it. It returns nil if the endpoints
// do not differ in the same way.
func (r *rivals) differs(q request, one *difference) *difference {
	for _, table := range tableNames {
		r.empty(table)
		for _, item := range one.before[table] {
			r.ask("PutItem", object{"TableName": table, "Item": item})
		}
		r.items[table] = one.before[table]
	}
	r.found = map[string]*difference{}
	r.check(one.seed, q, true)
	next := r.found[one.kind]
	if next != nil {
		next.times = one.times
	}
	return next
}

// smaller returns the objects that have one part less.
func smaller(body object) func(yield func(object) bool) {
	return func(yield func(object) bool) {
		for next := range less(body) {
			if !yield(next.(object)) {
				return
			}
		}
	}
}

// less returns the JSON values that have one part less than value.
func less(value any) func(yield func(any) bool) {
	return func(yield func(any) bool) {
		switch v := value.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				without := maps.Clone(v)
				delete(without, name)
				if !yield(without) {
					return
				}
				for inner := range less(v[name]) {
					with := maps.Clone(v)
					with[name] = inner
					if !yield(with) {
						return
					}
				}
			}
		case []any:
			for i := range v {
				if !yield(slices.Delete(slices.Clone(v), i, i+1)) {
					return
				}
				for inner := range less(v[i]) {
					with := slices.Clone(v)
					with[i] = inner
					if !yield(with) {
						return
					}
				}
			}
		case string:
			for _, text := range halves(v) {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// halves returns shorter forms of an expression: for each separator the text before it, and the
// text without it.
func halves(text string) []string {
	var shorter []string
	for _, between := range []string{" AND ", " OR ", " and ", "\nOr ", ", ", " SET ", " REMOVE "} {
		for i := range text {
			if strings.HasPrefix(text[i:], between) {
				shorter = append(shorter, text[:i], text[i+len(between):])
			}
		}
	}
	if inner, found := strings.CutPrefix(text, "("); found {
		shorter = append(shorter, strings.TrimSuffix(inner, ")"))
	}
	return shorter
}

// withoutUnused returns the request without unused placeholders.
func withoutUnused(body object) object {
	next := object{}
	if err := json.Unmarshal([]byte(shown(body)), &next); err != nil {
		return body
	}
	prune := func(at object) {
		var texts strings.Builder
		for _, member := range at {
			if text, ok := member.(string); ok {
				texts.WriteString(text + " ")
			}
		}
		for _, name := range []string{"ExpressionAttributeNames", "ExpressionAttributeValues"} {
			given, _ := at[name].(object)
			maps.DeleteFunc(given, func(key string, _ any) bool {
				return !strings.Contains(texts.String(), key) && !strings.Contains(key, "unused")
			})
			if given != nil && len(given) == 0 {
				delete(at, name)
			}
		}
	}
	prune(next)
	list, _ := next["TransactItems"].([]any)
	for _, one := range list {
		for _, action := range one.(object) {
			if at, ok := action.(object); ok {
				prune(at)
			}
		}
	}
	return next
}
