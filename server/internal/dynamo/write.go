package dynamo

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// write is a conditional write of one item: the common part of PutItem, UpdateItem and
// DeleteItem.
type write struct {
	table     string // as the request names it
	condition condition
	update    *update // of UpdateItem
	form      form

	returnValues string // NONE, ALL_OLD, …
	onFailure    string // NONE or ALL_OLD
	capacity     string // NONE, TOTAL or INDEXES
	used         consumed
	sending      *budget.Share // the memory of the answer
}

// write takes the common members of the conditional writes of a call.
func (m *members) write(operation *parameters, call *wire.Call) write {
	w := write{table: m.tableName(), sending: call.Sending}
	w.form = m.form(operation)
	w.returnValues = m.enum("ReturnValues", allReturnValues...)
	w.onFailure = m.enum("ReturnValuesOnConditionCheckFailure", "NONE", "ALL_OLD")
	w.capacity = m.capacity()
	// Metrics of item collections exist only for tables with local secondary indexes, which the
	// server does not support. DynamoDB returns none for other tables either.
	m.none("ReturnItemCollectionMetrics", `"NONE"`, `"SIZE"`)
	return w
}

func (m *members) capacity() string {
	return m.enum("ReturnConsumedCapacity", "NONE", "TOTAL", "INDEXES")
}

// parse parses the condition. Call it after check has found no fault in the members.
func (w *write) parse(m *members) error {
	if err := m.check(); err != nil {
		return err
	}
	if err := w.form.check(); err != nil {
		return err
	}
	var err error
	w.condition, err = w.form.condition("ConditionExpression", "Expected")
	return err
}

// onlyOld refuses the ReturnValues that PutItem and DeleteItem do not have.
func (w *write) onlyOld() error {
	if w.returnValues != "NONE" && w.returnValues != "ALL_OLD" {
		return validation("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil
}

// writeParameters are those of PutItem and DeleteItem, which have only a condition.
var writeParameters = &parameters{
	expressions: []string{"ConditionExpression"},
	older:       []string{"Expected", "ConditionalOperator"},
}

var allReturnValues = []string{"NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"}

// errCondition is the decision's error for a false condition.
var errCondition = errors.New("the condition does not hold")

// commit decides on the condition and makes the change in one step, and waits until the change is
// durable. room is an estimate of the bytes that the request can add to the item.
func (s *Service) commit(
	ctx context.Context, w *write, t *itemstore.Table, key itemstore.Key, room int,
	change func(old itemstore.Item) (itemstore.Item, error),
) (itemstore.Written, error) {
	written, err := s.items.Update(ctx, t, key, room,
		func(old itemstore.Item) (itemstore.Item, error) {
			defer w.decided(ctx)
			if err := w.allow(old); err != nil {
				return nil, err
			}
			return s.roomFor(old, change)
		})
	return written, s.count(ctx, w, t, written, err)
}

// decided drops the decoded request, and ends its turn. An answer with values is decoded within the
// turn, so that one waits for the disk.
func (w *write) decided(ctx context.Context) {
	w.form, w.condition = form{}, nil
	if w.returnValues == "NONE" && w.onFailure == "NONE" {
		w.update = nil
		endTurn(ctx)
	}
}

// allow returns errCondition if the condition does not hold.
func (w *write) allow(old itemstore.Item) error {
	if w.condition != nil && !w.condition.holds(old) {
		return errCondition
	}
	return nil
}

// count counts the capacity of a write that the store has decided on, and makes its error.
func (s *Service) count(
	ctx context.Context, w *write, t *itemstore.Table, written itemstore.Written, err error,
) error {
	refused := errors.Is(err, errCondition)
	switch {
	case err == nil:
		w.used.write(written, 1)
	case refused:
		w.used.refuse(written, 1)
	}
	t.Units().AddWrite(w.used.total())
	if !refused {
		return err
	}
	if w.onFailure == "NONE" || written.OldSize == 0 {
		return conditionFailed(nil)
	}
	item, err := s.returned(ctx, w.sending, written.OldSize, func() []byte {
		return appendItem(nil, written.Old())
	})
	if err != nil {
		return err
	}
	return conditionFailed(item)
}

// finish makes the answer of a write. show returns the attributes that it shows; nil: none.
func (s *Service) finish(
	ctx context.Context, w *write, world wire.World, written itemstore.Written,
	show func(itemstore.Written) itemstore.Item,
) ([]byte, error) {
	var a answer
	if w.returnValues != "NONE" {
		size := max(written.OldSize, written.NewSize)
		json, err := s.returned(ctx, w.sending, size, func() []byte {
			a.item("Attributes", show(written))
			return a.json
		})
		if err != nil {
			return nil, err
		}
		a.json = json
	}
	w.consumed(&a, world)
	return a.bytes(), nil
}

func (w *write) consumed(a *answer, world wire.World) {
	w.used.table = baseName(world, w.table)
	a.capacity(w.capacity, w.used)
}
