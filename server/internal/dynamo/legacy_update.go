package dynamo

import "github.com/runnel-stream/runnel/internal/wire"

// legacyUpdate converts AttributeUpdates into an update ("AttributeUpdates (legacy)" in the
// DynamoDB Developer Guide). Without any it creates the item with its key alone.
func legacyUpdate(v value) (*update, error) {
	u := new(update)
	if !v.isThere() {
		u.creates = true
		return u, nil
	}
	attributes, err := byAttribute(v)
	if err != nil {
		return nil, err
	}
	for _, attribute := range attributes {
		act, fault := attributeUpdate(attribute)
		if fault != nil {
			return nil, fault
		}
		if message := u.add(path{step{name: string(attribute.name())}}, act); message != "" {
			return nil, invalidParameter("%s", message) // unreachable: the names differ
		}
	}
	u.creates = u.creates || len(attributes) == 0
	return u, nil
}

func attributeUpdate(v value) (action, *wire.Error) {
	m := membersOf("AttributeValueUpdate", v)
	verb := m.enum("Action", "PUT", "ADD", "DELETE")
	value := m.attribute("Value")
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
