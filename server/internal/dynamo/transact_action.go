package dynamo

import (
	"context"
	"errors"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// transactAction is a transaction's operation on one item.
type transactAction struct {
	write
	verb string         // ConditionCheck, Delete, Put or Update
	item itemstore.Item // of Put
	key  itemstore.Item // of the others
}

// transactAction takes one of TransactItems. Report its error after check's.
func (m *members) transactAction() (*transactAction, error) {
	var action *transactAction
	verbs := 0
	for _, verb := range []string{"ConditionCheck", "Delete", "Put", "Update"} {
		inner := m.structure(verb, verb)
		if inner == nil {
			continue
		}
		verbs++
		action = inner.action(verb)
		m.absorb(inner)
	}
	switch verbs {
	case 0:
		return nil, validation("Invalid Request: TransactWriteRequest should contain Delete or " +
			"Put or Update request")
	case 1:
		return action, nil
	}
	return nil, validation("TransactItems can only contain one of Check, Put, Update or Delete")
}

func (m *members) action(verb string) *transactAction {
	a := &transactAction{verb: verb, write: write{table: m.tableName()}}
	operation := &parameters{expressions: writeParameters.expressions}
	if verb == "Update" {
		operation.expressions = updateParameters.expressions
	}
	a.form = m.form(operation)
	a.onFailure = m.enum("ReturnValuesOnConditionCheckFailure", "NONE", "ALL_OLD")
	target := &a.key
	name := "Key"
	if verb == "Put" {
		target, name = &a.item, "Item"
	}
	if *target = m.item(name); *target == nil {
		m.required(name)
	}
	if _, found := a.form.expression("UpdateExpression"); !found && verb == "Update" {
		m.required("UpdateExpression")
	}
	if _, found := a.form.expression("ConditionExpression"); !found && verb == "ConditionCheck" {
		m.required("ConditionExpression")
	}
	return a
}

// parse parses the expressions.
func (a *transactAction) parse() error {
	err := a.form.check()
	if err != nil {
		return err
	}
	if a.verb == "Update" {
		if a.update, err = a.form.update(); err != nil {
			return err
		}
	}
	if a.condition, err = a.form.condition("ConditionExpression", ""); err != nil {
		return err
	}
	return a.form.finish()
}

// step converts the action into a step of the store. A wrong cancels the transaction; an err ends
// it at once. grown counts the growth of the item.
func (s *Service) step(
	ctx context.Context, world wire.World, a *transactAction, grown *transactGrowth,
) (step itemstore.Step, wrong, err error) {
	step.Check, step.Delete = a.verb == "ConditionCheck", a.verb == "Delete"
	if step.Table, err = s.table(ctx, world, a.table, missingTable); err != nil {
		return step, nil, err
	}
	if err := s.scalarKeys(ctx, step.Table, &a.form); err != nil {
		return step, nil, err
	}
	schema := step.Table.Schema()
	switch {
	case a.verb == "Put" && itemstore.Size(a.item) > itemstore.MaxItemSize:
		wrong = validation(tooLarge)
	case a.verb == "Put":
		step.Key, wrong = keyIn(schema, a.item)
	default:
		step.Key, wrong = keyOf(schema, a.key)
	}
	switch {
	case wrong != nil:
	case a.update != nil:
		wrong = a.update.sparesKey(schema)
	case a.verb == "Put":
		wrong = s.items.CheckIndexKeys(ctx, step.Table, a.item)
	}
	step.Decide = func(old itemstore.Item) (itemstore.Item, error) {
		defer a.decided()
		switch {
		case a.condition != nil && !a.condition.holds(old):
			return grown.with(old, old, errCondition)
		case step.Check:
			return grown.with(old, old, nil)
		case a.update != nil:
			next, err := a.update.apply(old, a.key)
			return grown.with(old, next, err)
		}
		return grown.with(old, a.item, nil) // nil for Delete
	}
	return step, wrong, nil
}

// decided drops the decoded request.
func (a *transactAction) decided() {
	a.form, a.condition, a.item, a.key, a.update = form{}, nil, nil, nil, nil
}

// fault converts the store's error about the action's item into an answer.
func (a *transactAction) fault(err error) error {
	if a.verb == "Update" {
		return itemFault(err, updateTooLarge)
	}
	return itemFault(err, tooLarge)
}

// isEmptyKey reports whether an answer is about an empty key value.
func isEmptyKey(err error) bool {
	var answer *wire.Error
	return errors.As(err, &answer) &&
		strings.HasPrefix(answer.Message, "One or more parameter values are not valid. ")
}

// cancelled is the answer to a cancelled transaction.
func cancelled(codes []string, reasons []map[string]any) *wire.Error {
	err := fault("TransactionCanceledException", "Transaction cancelled, please refer "+
		"cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	err.Extra = map[string]any{"CancellationReasons": reasons}
	return err
}
