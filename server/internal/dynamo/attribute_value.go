package dynamo

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

var noName = invalidParameter("Attribute name must not be empty")

const tooDeep = "Nesting Levels have exceeded supported limits: Attributes in the item have " +
	"nested levels beyond supported limit"

const maxName = 64<<10 - 1 // bytes of an attribute's name ("Quotas in Amazon DynamoDB")

// parseItem reads {"name": attribute value, …}. depth is the number of lists and maps around it.
func parseItem(v value, depth int) (itemstore.Item, *wire.Error) {
	if v.kind() != '{' {
		return nil, unexpected(v, "Map")
	}
	item := make(itemstore.Item, v.node().inner)
	for member := range v.inner() {
		switch name := member.name(); {
		case len(name) == 0:
			return nil, noName
		case len(name) > maxName:
			return nil, validation("Attribute name is too large, must be less than %d bytes",
				maxName+1)
		}
		parsed, fault := parseAttribute(member, depth)
		if fault != nil {
			return nil, fault
		}
		item[string(member.name())] = parsed
	}
	return item, nil
}

// parseAttribute reads an attribute value such as {"S": "text"}.
func parseAttribute(v value, depth int) (itemstore.Value, *wire.Error) {
	if depth >= itemstore.MaxDepth {
		return nil, validation(tooDeep)
	}
	if v.kind() != '{' && !v.isNull() {
		return nil, unexpected(v, "AttributeValue")
	}
	var parsed itemstore.Value
	for content := range v.inner() {
		if content.isNull() {
			continue
		}
		if parsed != nil {
			return nil, validation("Supplied AttributeValue has more than one datatypes set, " +
				"must contain exactly one of the supported datatypes")
		}
		var fault *wire.Error
		if parsed, fault = parseKind(kindNamed(content.name()), content, depth); fault != nil {
			return nil, fault
		}
	}
	if parsed == nil {
		return nil, validation("Supplied AttributeValue is empty, must contain exactly one of " +
			"the supported datatypes")
	}
	return parsed, nil
}

// kindNamed returns the kind with a name. It also returns unknown names.
func kindNamed(name []byte) itemstore.Kind {
	for _, kind := range kindNames {
		if string(name) == string(kind) {
			return kind
		}
	}
	return itemstore.Kind(name)
}

func parseKind(
	kind itemstore.Kind, v value, depth int,
) (itemstore.Value, *wire.Error) {
	switch kind {
	case itemstore.KindString:
		text, fault := parseText(v)
		return itemstore.String(text), fault
	case itemstore.KindNumber:
		text, fault := parseText(v)
		if fault != nil {
			return nil, fault
		}
		return parseNumber(text)
	case itemstore.KindBinary:
		text, fault := parseBinary(v)
		return itemstore.Binary(text), fault
	case itemstore.KindBool:
		flag, fault := parseFlag(v)
		return itemstore.Bool(flag), fault
	case itemstore.KindNull:
		if flag, fault := parseFlag(v); fault != nil || !flag {
			if fault == nil {
				fault = invalidParameter("Null attribute value types must have the value of true")
			}
			return nil, fault
		}
		return itemstore.Null{}, nil
	case itemstore.KindMap:
		item, fault := parseItem(v, depth+1)
		return item, fault
	case itemstore.KindList:
		return parseList(v, depth+1)
	case itemstore.KindStringSet, itemstore.KindNumberSet, itemstore.KindBinarySet:
		return parseSet(kind, v)
	}
	return nil, validation("Supplied AttributeValue has the unknown datatype %s, must contain "+
		"exactly one of the supported datatypes", kind)
}

// parseText reads a string. A null as the element of a set counts as an empty string.
func parseText(v value) (string, *wire.Error) {
	switch v.kind() {
	case '"':
		return v.text(), nil
	case 'n':
		return "", nil
	}
	return "", unexpected(v, "String")
}

func parseFlag(v value) (bool, *wire.Error) {
	if kind := v.kind(); kind != 't' && kind != 'f' {
		return false, unexpected(v, "Boolean")
	}
	return v.kind() == 't', nil
}

func parseBinary(v value) (string, *wire.Error) {
	text, fault := parseText(v)
	if fault != nil {
		return "", fault
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", serialization("Invalid Base64 in a Binary value: %v", err)
	}
	return string(data), nil
}

func parseNumber(text string) (itemstore.Value, *wire.Error) {
	number, err := itemstore.ParseNumber(text)
	if err != nil {
		return nil, numberFault(err, text)
	}
	return number, nil
}

func parseList(v value, depth int) (itemstore.Value, *wire.Error) {
	if v.kind() != '[' {
		return nil, unexpected(v, "List")
	}
	list := make(itemstore.List, 0, v.node().inner)
	for element := range v.inner() {
		parsed, fault := parseAttribute(element, depth)
		if fault != nil {
			return nil, fault
		}
		list = append(list, parsed)
	}
	return list, nil
}

func parseSet(kind itemstore.Kind, v value) (itemstore.Value, *wire.Error) {
	if v.kind() != '[' {
		return nil, unexpected(v, "Set")
	}
	var numbers []itemstore.Number
	texts := make([]string, 0, v.node().inner)
	for element := range v.inner() {
		var text string
		var fault *wire.Error
		switch kind {
		case itemstore.KindBinarySet:
			text, fault = parseBinary(element)
		default:
			text, fault = parseText(element)
		}
		if fault == nil && kind == itemstore.KindNumberSet {
			var number itemstore.Value
			if number, fault = parseNumber(text); fault == nil {
				numbers = append(numbers, number.(itemstore.Number))
			}
		}
		if fault != nil {
			return nil, fault
		}
		texts = append(texts, text)
	}
	return newSet(kind, texts, numbers)
}

func newSet(
	kind itemstore.Kind, texts []string, numbers []itemstore.Number,
) (itemstore.Value, *wire.Error) {
	var set itemstore.Value
	distinct := false
	listed := strings.Join(texts, ", ") // before sorting
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
	var room [16]string
	names := slices.AppendSeq(room[:0], maps.Keys(item))
	slices.Sort(names)
	for i, name := range names {
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
		dst = appendNumber(dst, v)
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
		dst = appendList(dst, v, appendNumber)
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

func appendNumber(dst []byte, n itemstore.Number) []byte {
	return append(n.Append(append(dst, '"')), '"')
}

func appendBase64(dst []byte, data string) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, []byte(data))
	return append(dst, '"')
}

// appendText appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
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
