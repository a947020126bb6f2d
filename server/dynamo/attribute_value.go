package dynamo

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/itemstore"
)

var noName = invalidParameter("Attribute name must not be empty")

const tooDeep = "Nesting Levels have exceeded supported limits: Attributes in the item have " +
	"nested levels beyond supported limit"

const maxName = 64<<10 - 1 // bytes of an attribute's name ("Quotas in Amazon DynamoDB")

// parseItem reads {"name": attribute value, …}. depth is the levels of lists and maps that it
// is in.
func parseItem(raw json.RawMessage, depth int) (itemstore.Item, *awswire.Error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, unexpected(raw, "Map")
	}
	item := make(itemstore.Item, len(members))
	for name, value := range members {
		switch {
		case name == "":
			return nil, noName
		case len(name) > maxName:
			return nil, validation("Attribute name is too large, must be less than %d bytes",
				maxName+1)
		}
		parsed, fault := parseAttribute(value, depth)
		if fault != nil {
			return nil, fault
		}
		item[name] = parsed
	}
	return item, nil
}

// parseAttribute reads an attribute value, as {"S": "text"}.
func parseAttribute(raw json.RawMessage, depth int) (itemstore.Value, *awswire.Error) {
	if depth >= itemstore.MaxDepth {
		return nil, validation(tooDeep)
	}
	var members map[itemstore.Kind]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, unexpected(raw, "AttributeValue")
	}
	var value itemstore.Value
	for kind, content := range members {
		if string(content) == "null" {
			continue
		}
		if value != nil {
			return nil, validation("Supplied AttributeValue has more than one datatypes set, " +
				"must contain exactly one of the supported datatypes")
		}
		var fault *awswire.Error
		if value, fault = parseKind(kind, content, depth); fault != nil {
			return nil, fault
		}
	}
	if value == nil {
		return nil, validation("Supplied AttributeValue is empty, must contain exactly one of " +
			"the supported datatypes")
	}
	return value, nil
}

func parseKind(
	kind itemstore.Kind, raw json.RawMessage, depth int,
) (itemstore.Value, *awswire.Error) {
	switch kind {
	case itemstore.KindString:
		text, fault := parseText(raw)
		return itemstore.String(text), fault
	case itemstore.KindNumber:
		text, fault := parseText(raw)
		if fault != nil {
			return nil, fault
		}
		return parseNumber(text)
	case itemstore.KindBinary:
		text, fault := parseBinary(raw)
		return itemstore.Binary(text), fault
	case itemstore.KindBool:
		flag, fault := parseFlag(raw)
		return itemstore.Bool(flag), fault
	case itemstore.KindNull:
		if flag, fault := parseFlag(raw); fault != nil || !flag {
			if fault == nil {
				fault = invalidParameter("Null attribute value types must have the value of true")
			}
			return nil, fault
		}
		return itemstore.Null{}, nil
	case itemstore.KindMap:
		item, fault := parseItem(raw, depth+1)
		return item, fault
	case itemstore.KindList:
		return parseList(raw, depth+1)
	case itemstore.KindStringSet, itemstore.KindNumberSet, itemstore.KindBinarySet:
		return parseSet(kind, raw)
	}
	return nil, validation("Supplied AttributeValue has the unknown datatype %s, must contain "+
		"exactly one of the supported datatypes", kind)
}

func parseText(raw json.RawMessage) (string, *awswire.Error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", unexpected(raw, "String")
	}
	return text, nil
}

func parseFlag(raw json.RawMessage) (bool, *awswire.Error) {
	var flag bool
	if err := json.Unmarshal(raw, &flag); err != nil {
		return false, unexpected(raw, "Boolean")
	}
	return flag, nil
}

func parseBinary(raw json.RawMessage) (string, *awswire.Error) {
	text, fault := parseText(raw)
	if fault != nil {
		return "", fault
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", serialization("Invalid Base64 in a Binary value: %v", err)
	}
	return string(data), nil
}

func parseNumber(text string) (itemstore.Value, *awswire.Error) {
	number, err := itemstore.ParseNumber(text)
	if err != nil {
		return nil, numberFault(err, text)
	}
	return number, nil
}

func parseList(raw json.RawMessage, depth int) (itemstore.Value, *awswire.Error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, unexpected(raw, "List")
	}
	list := make(itemstore.List, 0, len(elements))
	for _, element := range elements {
		value, fault := parseAttribute(element, depth)
		if fault != nil {
			return nil, fault
		}
		list = append(list, value)
	}
	return list, nil
}

func parseSet(kind itemstore.Kind, raw json.RawMessage) (itemstore.Value, *awswire.Error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, unexpected(raw, "Set")
	}
	texts := make([]string, len(elements))
	numbers := make([]itemstore.Number, len(elements))
	for i, element := range elements {
		var fault *awswire.Error
		switch kind {
		case itemstore.KindBinarySet:
			texts[i], fault = parseBinary(element)
		default:
			texts[i], fault = parseText(element)
		}
		if fault == nil && kind == itemstore.KindNumberSet {
			var value itemstore.Value
			if value, fault = parseNumber(texts[i]); fault == nil {
				numbers[i] = value.(itemstore.Number)
			}
		}
		if fault != nil {
			return nil, fault
		}
	}
	return newSet(kind, texts, numbers)
}

func newSet(
	kind itemstore.Kind, texts []string, numbers []itemstore.Number,
) (itemstore.Value, *awswire.Error) {
	var set itemstore.Value
	distinct := false
	listed := strings.Join(texts, ", ") // before they are sorted
	switch kind {
	case itemstore.KindStringSet:
		if len(texts) == 0 {
			return nil, invalidParameter("An string set  may not be empty")
		}
		set, distinct = itemstore.NewStringSet(texts)
	case itemstore.KindNumberSet:
		if len(numbers) == 0 {
			return nil, invalidParameter("An number set  may not be empty")
		}
		set, distinct = itemstore.NewNumberSet(numbers)
	default:
		if len(texts) == 0 {
			return nil, invalidParameter("Binary sets should not be empty")
		}
		set, distinct = itemstore.NewBinarySet(texts)
	}
	if !distinct {
		return nil, invalidParameter("Input collection [%s] contains duplicates.", listed)
	}
	return set, nil
}

// appendItem appends an item as JSON, its names in ascending order.
func appendItem(dst []byte, item itemstore.Item) []byte {
	dst = append(dst, '{')
	for i, name := range sortedKeys(item) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, name), ':')
		dst = appendAttribute(dst, item[name])
	}
	return append(dst, '}')
}

// appendAttribute appends an attribute value as JSON.
func appendAttribute(dst []byte, value itemstore.Value) []byte {
	dst = append(dst, `{"`...)
	dst = append(dst, value.Kind()...)
	dst = append(dst, `":`...)
	switch v := value.(type) {
	case itemstore.String:
		dst = appendText(dst, string(v))
	case itemstore.Number:
		dst = appendText(dst, v.String())
	case itemstore.Binary:
		dst = appendBase64(dst, string(v))
	case itemstore.Bool:
		dst = strconv.AppendBool(dst, bool(v))
	case itemstore.Null:
		dst = append(dst, "true"...)
	case itemstore.StringSet:
		dst = appendList(dst, v, appendText)
	case itemstore.BinarySet:
		dst = appendList(dst, v, appendBase64)
	case itemstore.NumberSet:
		dst = appendList(dst, v, func(dst []byte, n itemstore.Number) []byte {
			return appendText(dst, n.String())
		})
	case itemstore.List:
		dst = appendList(dst, v, appendAttribute)
	case itemstore.Map:
		dst = appendItem(dst, v)
	}
	return append(dst, '}')
}

func appendList[E any](dst []byte, list []E, one func([]byte, E) []byte) []byte {
	dst = append(dst, '[')
	for i, element := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, element)
	}
	return append(dst, ']')
}

func appendBase64(dst []byte, data string) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, []byte(data))
	return append(dst, '"')
}

// appendText appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, length := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += length
			continue
		}
		i++
	}
	return append(dst, '"')
}
