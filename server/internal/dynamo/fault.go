package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// The namespaces of DynamoDB's error codes.
const (
	namespace       = "com.amazonaws.dynamodb.v20120810#"
	coralValidation = "com.amazon.coral.validate#ValidationException"
	coralService    = "com.amazon.coral.service#"
)

func validation(format string, args ...any) *wire.Error {
	return &wire.Error{Code: coralValidation, Message: fmt.Sprintf(format, args...)}
}

// invalidParameter is a validation error with DynamoDB's common beginning.
func invalidParameter(format string, args ...any) *wire.Error {
	return validation("One or more parameter values were invalid: "+format, args...)
}

func serialization(format string, args ...any) *wire.Error {
	return &wire.Error{
		Code:    coralService + "SerializationException",
		Message: fmt.Sprintf(format, args...),
	}
}

func fault(code, format string, args ...any) *wire.Error {
	return &wire.Error{Code: namespace + code, Message: fmt.Sprintf(format, args...)}
}

func tableNotFound(name string) *wire.Error {
	return fault("ResourceNotFoundException", "Requested resource not found: Table: %s not found",
		name)
}

// conditionFailed is the answer to a write with a false condition. It shows the JSON of an item
// unless that is nil.
func conditionFailed(item json.RawMessage) *wire.Error {
	err := fault("ConditionalCheckFailedException", "The conditional request failed")
	if item != nil {
		err.Extra = map[string]any{"Item": item}
	}
	return err
}

// numberFault is the answer to an invalid number or sum.
func numberFault(err error, text string) *wire.Error {
	switch {
	case errors.Is(err, itemstore.ErrNumberOverflow):
		return validation("Number overflow. Attempting to store a number with magnitude " +
			"larger than supported range")
	case errors.Is(err, itemstore.ErrNumberUnderflow):
		return validation("Number underflow. Attempting to store a number with magnitude " +
			"smaller than supported range")
	case errors.Is(err, itemstore.ErrNumberDigits):
		return validation("Attempting to store more than 38 significant digits in a Number")
	case text == "":
		return validation("The parameter cannot be converted to a numeric value")
	default:
		return validation("The parameter cannot be converted to a numeric value: %s", text)
	}
}

// indexKeyFault is the answer to an item that does not fit an index. updating is true if an
// update made the item; DynamoDB then uses another text.
func indexKeyFault(err *itemstore.IndexKeyError, updating bool) *wire.Error {
	name := err.Attribute.Name
	if kind := err.Value.Kind(); kind != err.Attribute.Kind {
		return invalidParameter("Type mismatch for Index Key %s Expected: %s Actual: %s "+
			"IndexName: %s", name, err.Attribute.Kind, kind, err.Index)
	}
	kind := "string"
	if err.Attribute.Kind == itemstore.KindBinary {
		kind = "binary"
	}
	switch {
	case itemstore.ValueSize(err.Value) > 0: // the text is guessed
		return invalidParameter("Size of index key %s has exceeded the maximum size limit. "+
			"IndexName: %s", name, err.Index)
	case updating:
		return validation("One or more parameter values are not valid. The update expression "+
			"attempted to update a secondary index key to a value that is not supported. The "+
			"AttributeValue for a key attribute cannot contain an empty %s value.", kind)
	}
	return validation("One or more parameter values are not valid. A value specified for a "+
		"secondary index key is not supported. The AttributeValue for a key attribute cannot "+
		"contain an empty %s value. IndexName: %s, IndexKey: %s", kind, err.Index, name)
}

// itemFault converts the store's errors about an item or its table into answers. sizeMessage is
// the operation's text about an item that is too large.
func itemFault(err error, sizeMessage string) error {
	var index *itemstore.IndexKeyError
	switch {
	case errors.As(err, &index):
		return indexKeyFault(index, sizeMessage == updateTooLarge)
	case errors.Is(err, itemstore.ErrTableNotFound):
		return fault("ResourceNotFoundException", "Requested resource not found")
	case errors.Is(err, itemstore.ErrItemsMemory):
		return fault("ProvisionedThroughputExceededException", "The items take as much memory as "+
			"runnel serve --items-memory allows: delete some, or allow more. Deletions and writes "+
			"that make no item larger go on")
	case errors.Is(err, itemstore.ErrItemTooLarge):
		return validation("%s", sizeMessage)
	case errors.Is(err, itemstore.ErrItemTooDeep):
		return validation(tooDeep)
	case errors.Is(err, itemstore.ErrKey):
		return validation("The provided key element does not match the schema")
	}
	return err
}

// message returns an answer's text without its code.
func message(err error) string {
	var answer *wire.Error
	if errors.As(err, &answer) {
		return answer.Message
	}
	return err.Error()
}
