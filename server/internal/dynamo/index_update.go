package dynamo

import (
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// indexUpdate is one of GlobalSecondaryIndexUpdates.
type indexUpdate struct {
	verb string // Create, Update or Delete
	name string
	indexRequest
}

// indexUpdates takes GlobalSecondaryIndexUpdates. The error is the fault of one of them as a
// whole; report it after check's.
func (m *members) indexUpdates() ([]indexUpdate, error) {
	list, _ := m.structures("GlobalSecondaryIndexUpdates", "GlobalSecondaryIndexUpdate")
	var updates []indexUpdate
	var fault error
	names := map[string]bool{}
	for _, one := range list {
		u, wrong := one.indexUpdate()
		m.absorb(one)
		if wrong == nil && names[u.name] {
			wrong = invalidParameter("Only one global secondary index update per index is "+
				"allowed simultaneously. Index: %s", u.name)
		}
		if fault == nil {
			fault = wrong
		}
		names[u.name] = true
		updates = append(updates, u)
	}
	return updates, fault
}

func (m *members) indexUpdate() (indexUpdate, error) {
	var u indexUpdate
	actions := 0
	for _, verb := range []string{"Create", "Update", "Delete"} {
		action := m.structure(verb, verb+"GlobalSecondaryIndexAction")
		if action == nil {
			continue
		}
		actions++
		u.verb = verb
		switch verb {
		case "Create":
			u.indexRequest = action.newIndex()
			u.name = u.index.Name
		case "Update":
			u.name, u.billing = action.indexName(), action.throughput()
			if !u.billing.throughput {
				action.required("ProvisionedThroughput")
			}
		default:
			u.name = action.indexName()
		}
		m.absorb(action)
	}
	switch actions {
	case 0:
		return u, invalidParameter("One of GlobalSecondaryIndexUpdate.Update, " +
			"GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be " +
			"null")
	case 1:
		return u, nil
	}
	return u, invalidParameter("Only one global secondary index action is allowed per " +
		"GlobalSecondaryIndexUpdate object")
}

// apply applies the update to a description, which must have its own copy of the list of indexes.
func (u indexUpdate) apply(meta *itemstore.Meta, definitions []attributeDefinition) error {
	at := slices.IndexFunc(meta.Indexes,
		func(index itemstore.Index) bool { return index.Name == u.name })
	switch {
	case u.verb == "Create" && at >= 0:
		return validation("Attempting to create an index which already exists")
	case u.verb == "Create" && len(definitions) == 0:
		return invalidParameter("AttributeDefinitions is not specified for index: %s", u.name)
	case u.verb == "Create":
		index, err := u.parse(definitions, meta.BillingMode)
		if err != nil {
			return err
		}
		if len(meta.Indexes) >= maxIndexes { // the text is guessed
			return fault("LimitExceededException", "Subscriber limit exceeded: "+
				"GlobalSecondaryIndex count exceeds the per-table limit of %d", maxIndexes)
		}
		meta.Indexes = append(meta.Indexes, index)
		return nil
	case at < 0: // the text is guessed
		return fault("ResourceNotFoundException", "Requested resource not found: Index: %s not "+
			"found", u.name)
	case u.verb == "Delete":
		meta.Indexes = slices.Delete(meta.Indexes, at, at+1)
		return nil
	}
	if meta.BillingMode == onDemand {
		return invalidParameter("Neither ReadCapacityUnits nor WriteCapacityUnits can be "+
			"specified for index: %s when BillingMode is PAY_PER_REQUEST", u.name)
	}
	meta.Indexes[at].ReadCapacity = u.billing.read
	meta.Indexes[at].WriteCapacity = u.billing.write
	return nil
}
