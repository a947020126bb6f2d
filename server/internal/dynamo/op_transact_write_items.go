package dynamo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const (
	maxTransactItems = 100 // "Quotas in Amazon DynamoDB", transactions
	maxToken         = 36  // characters of ClientRequestToken ("TransactWriteItems")
)

// transactWriteItems makes up to 100 conditional writes: all at one instant, or none.
func (s *Service) transactWriteItems(ctx context.Context, call *wire.Call) ([]byte, error) {
	r, err := parseTransaction(call.Body)
	if err != nil {
		return nil, err
	}
	if r.token != nil {
		r.token.World, r.token.At = call.World, s.now().UnixMilli()
	}
	steps := make([]itemstore.Step, len(r.actions))
	faults := make([]error, len(r.actions))
	var grown transactGrowth
	for i, action := range r.actions {
		if steps[i], faults[i], err = s.step(ctx, call.World, action, &grown); err != nil {
			return nil, err
		}
	}
	if err := r.cancelled(faults, make([]json.RawMessage, len(faults))); err != nil {
		return nil, err
	}
	last := &steps[len(steps)-1]
	decide := last.Decide
	last.Decide = func(old itemstore.Item) (itemstore.Item, error) {
		defer endTurn(ctx) // every step was decided, in order
		next, err := decide(old)
		if err == nil {
			err = s.roomForAll(&grown)
		}
		return next, err
	}
	outcome, err := s.items.Transact(ctx, steps, roomOf(call.Body, len(steps)), r.token)
	if full := fullIn(outcome.Errs); full != nil {
		return nil, full
	}
	switch {
	case errors.Is(err, itemstore.ErrCancelled):
		for i, w := range outcome.Written {
			var used consumed
			used.refuse(w, 2)
			steps[i].Table.Units().AddWrite(used.total())
		}
		items, err := s.refusedItems(ctx, call, r, outcome)
		if err != nil {
			return nil, err
		}
		return nil, r.cancelled(outcome.Errs, items)
	case errors.Is(err, itemstore.ErrSameItem):
		return nil, validation("Transaction request cannot include multiple operations on one " +
			"item")
	case errors.Is(err, itemstore.ErrTokenUsed): // the text is guessed
		return nil, fault("IdempotentParameterMismatchException",
			"The request uses a client token that an earlier request with other parameters used")
	case errors.Is(err, itemstore.ErrTransactionTooLarge): // the text is guessed
		return nil, validation("The aggregate size of the items in the transaction exceeds the "+
			"limit of %d bytes", itemstore.MaxTransaction)
	case err != nil:
		return nil, itemFault(err, "")
	}
	return r.answer(call.World, steps, outcome)
}

// transaction holds the members of a TransactWriteItems.
type transaction struct {
	actions  []*transactAction
	token    *itemstore.Token // without world and time
	capacity string
}

func parseTransaction(body []byte) (*transaction, error) {
	m := parseMembers("TransactWriteItems", body)
	r := &transaction{capacity: m.capacity()}
	m.none("ReturnItemCollectionMetrics", `"NONE"`, `"SIZE"`)
	items := m.find("TransactItems")
	list, found := m.structures("TransactItems", "TransactWriteItem")
	var wrong error
	switch {
	case !found:
		m.required("TransactItems")
	case len(list) == 0:
		m.violated("Value '[]' at 'transactItems' failed to satisfy constraint: Member must " +
			"have length greater than or equal to 1")
	case len(list) > maxTransactItems:
		m.violated("Value at 'transactItems' failed to satisfy constraint: Member must have "+
			"length less than or equal to %d", maxTransactItems)
	default:
		for _, one := range list {
			action, err := one.transactAction()
			m.absorb(one)
			if wrong == nil {
				wrong = err
			}
			r.actions = append(r.actions, action)
		}
	}
	if token, found := m.text("ClientRequestToken"); found {
		if len(token) < 1 || len(token) > maxToken {
			m.violated("Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member "+
				"must have length between 1 and %d", token, maxToken)
		}
		r.token = &itemstore.Token{Text: token}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if r.token != nil { // after the check of the number of items
		r.token.Hash = hashOf(items)
	}
	if wrong != nil {
		return nil, wrong
	}
	for _, action := range r.actions {
		if err := action.parse(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// hashOf hashes the meaning of JSON: the order of members and white space do not matter, as in
// DynamoDB's comparison of two requests with one token.
func hashOf(v value) [32]byte {
	if !v.isThere() {
		return [32]byte{} // the request is refused in any case
	}
	raw := v.raw()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&value) == nil {
		if canonical, err := json.Marshal(value); err == nil {
			raw = canonical
		}
	}
	return sha256.Sum256(raw)
}

// cancelled is the answer to a transaction that its steps' faults have cancelled; nil without
// faults. DynamoDB gives a reason for each step, in order. An empty key value is an exception:
// for it, DynamoDB answers with a plain validation error, as if it had checked it before the
// transaction.
func (r *transaction) cancelled(faults []error, items []json.RawMessage) error {
	codes := make([]string, len(faults))
	reasons := make([]map[string]any, len(faults))
	failed := false
	for i, err := range faults {
		codes[i] = "None"
		reasons[i] = map[string]any{"Code": codes[i]}
		if err == nil {
			continue
		}
		failed = true
		err = r.actions[i].fault(err)
		if isEmptyKey(err) {
			return err
		}
		codes[i] = "ValidationError"
		if errors.Is(err, errCondition) {
			codes[i] = "ConditionalCheckFailed"
			err = conditionFailed(nil)
			if len(items[i]) > 0 {
				reasons[i]["Item"] = items[i]
			}
		}
		reasons[i]["Code"], reasons[i]["Message"] = codes[i], message(err)
	}
	if !failed {
		return nil
	}
	return cancelled(codes, reasons)
}

// refusedItems returns the JSON of the items that the answer to a cancelled transaction shows, by
// step; nil for a step that shows none.
func (s *Service) refusedItems(
	ctx context.Context, call *wire.Call, r *transaction, outcome itemstore.Outcome,
) ([]json.RawMessage, error) {
	shown, size := make([]bool, len(r.actions)), 0
	for i, action := range r.actions {
		if errors.Is(outcome.Errs[i], errCondition) && action.onFailure == "ALL_OLD" {
			shown[i], size = true, size+outcome.Written[i].OldSize
		}
	}
	items := make([]json.RawMessage, len(r.actions))
	_, err := s.returned(ctx, call.Sending, size, func() (all []byte) {
		ends := make([]int, len(items))
		for i, w := range outcome.Written {
			if shown[i] && w.OldSize > 0 {
				all = appendItem(all, w.Old())
			}
			ends[i] = len(all)
		}
		from := 0
		for i, to := range ends {
			items[i], from = all[from:to:to], to
		}
		return all
	})
	return items, err
}

func (r *transaction) answer(
	world wire.World, steps []itemstore.Step, outcome itemstore.Outcome,
) ([]byte, error) {
	tables := map[string]*consumed{}
	for i, action := range r.actions {
		name := baseName(world, action.table)
		if tables[name] == nil {
			tables[name] = &consumed{table: name}
		}
		var used consumed
		if w := outcome.Written[i]; outcome.Repeated {
			tables[name].kind = "ReadCapacityUnits"
			used.own = 2 * readUnits(w.OldSize, true)
			steps[i].Table.Units().AddRead(used.total())
		} else {
			tables[name].kind = "WriteCapacityUnits"
			used.write(w, 2)
			steps[i].Table.Units().AddWrite(used.total())
		}
		tables[name].add(used)
	}
	var a answer
	if r.capacity == "NONE" {
		return a.bytes(), nil
	}
	a.name("ConsumedCapacity")
	a.json = appendList(a.json, sortedKeys(tables), func(dst []byte, name string) []byte {
		return append(dst, tables[name].describe(r.capacity).bytes()...)
	})
	return a.bytes(), nil
}
