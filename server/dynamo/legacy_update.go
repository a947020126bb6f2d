package dynamo

import (
	"encoding/json"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/itemstore"
)

// legacyUpdate makes AttributeUpdates into an update ("AttributeUpdates (legacy)" in the
// DynamoDB Developer Guide). Without any it creates the item with its key alone.
func legacyUpdate(raw json.RawMessage) (*update, error) {
	u := newUpdate()
	if raw == nil {
		u.creates = true
		return u, nil
	}
	attributes, err := byAttribute(raw)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(attributes) {
		act, fault := attributeUpdate(attributes[name])
		if fault != nil {
			return nil, fault
		}
		if message := u.add(path{step{name: name}}, act); message != "" {
			return nil, invalidParameter("%s", message) // not reached: the names differ
		}
	}
	u.creates = u.creates || len(attributes) == 0
	return u, nil
}

func attributeUpdate(raw json.RawMessage) (action, *awswire.Error) {
	m := parseMembers("AttributeValueUpdate", raw)
	verb := m.enum("Action", "PUT", "ADD", "DELETE")
	var value itemstore.Value
	if raw := m.take("Value"); raw != nil {
		var fault *awswire.Error
		if value, fault = parseAttribute(raw, 0); fault != nil {
			m.fail(fault)
		}
	}
	switch {
	case m.fault != nil:
		return action{}, m.fault
	case m.left() != "":
		return action{}, unsupported(m.left())
	case len(m.invalid) > 0:
		return action{}, validation("1 validation error detected: %s", m.invalid[0])
	case value == nil && verb == "DELETE":
		return action{verb: remove, older: true}, nil
	case value == nil:
		return action{}, invalidParameter("Only DELETE action is allowed when no attribute " +
			"value is specified")
	}
	constant := valueOperand{constant: value}
	kind := value.Kind()
	isSet := kind == "SS" || kind == "NS" || kind == "BS"
	switch {
	case verb == "PUT":
		return action{set, constant, true}, nil
	case verb == "DELETE" && isSet:
		return action{erase, constant, true}, nil
	case verb == "ADD" && (isSet || kind == "N" || kind == "L"):
		return action{attach, constant, true}, nil
	}
	return action{}, invalidParameter("%s action is not supported for the type %s", verb, kind)
}
