package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// object is a decoded request or answer.
type object map[string]any

// at returns the value at a path such as "StreamDescription.Shards.0.ShardId", nil if absent.
func (o object) at(path string) any {
	var here any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		switch in := here.(type) {
		case map[string]any:
			here = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			here = in[i]
		default:
			return nil
		}
	}
	return here
}

// text returns the string at a path, "" if there is none.
func (o object) text(path string) string {
	s, _ := o.at(path).(string)
	return s
}

// list returns the objects of the list at a path.
func (o object) list(path string) []object {
	items, _ := o.at(path).([]any)
	objects := make([]object, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			objects = append(objects, m)
		}
	}
	return objects
}

// texts returns the strings of the list at a path.
func (o object) texts(path string) []string {
	items, _ := o.at(path).([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// object returns the object at a path, nil if there is none.
func (o object) object(path string) object {
	m, _ := o.at(path).(map[string]any)
	return m
}

// has reports whether the object has a member, null included.
func (o object) has(member string) bool {
	_, there := o[member]
	return there
}

// number returns the number at a path, and whether there is one.
func (o object) number(path string) (float64, bool) {
	switch n := o.at(path).(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case uint64:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// with returns a copy with members set; a nil value removes the member.
func (o object) with(members object) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	for k, v := range members {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

// parseObject decodes a JSON object and keeps its numbers as text (json.Number).
func parseObject(data []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var o map[string]any
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	return o, nil
}

// bigNumber parses a decimal number of any length. It returns nil for other text.
func bigNumber(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil
	}
	return n
}

// hexNumber writes a hexadecimal number in decimal.
func hexNumber(hex string) string {
	n, ok := new(big.Int).SetString(hex, 16)
	if !ok {
		panic("no hexadecimal number: " + hex) // a mistake in the fact
	}
	return n.String()
}

// show formats a value for a message, cut to maxShown.
func show(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case error:
		s = v.Error()
	case []byte:
		s = fmt.Sprintf("% x", v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		s = string(data)
	}
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// maxShown bounds one value in a result, in bytes.
const maxShown = 600
