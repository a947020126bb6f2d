package server_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// itemState is the items: the n of each, and 0 for none.
type itemState [itemKeys]int

// itemCall is a client's call: if the items of keys are as in want, they become as in next. A read
// has one key, and the same in want and next.
type itemCall struct {
	keys, want, next []int
	read             bool
}

// itemAnswer is the answer to it.
type itemAnswer struct {
	unknown bool        // nothing
	done    bool        // the condition held
	shown   map[int]int // items that the answer showed, as they were
}

var itemModel = porcupine.Model{
	Init: func() any { return itemState{} },
	Step: func(state, input, output any) (bool, any) {
		items, c, told := state.(itemState), input.(itemCall), output.(itemAnswer)
		next, holds := items, true
		for i, key := range c.keys {
			holds = holds && (c.read || items[key] == c.want[i])
			if !c.read {
				next[key] = c.next[i]
			}
		}
		if !holds {
			next = items
		}
		for key, n := range told.shown {
			if items[key] != n {
				return false, items
			}
		}
		return told.unknown || told.done == holds, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
}

// itemHistory is the record of the clients' calls to a table and of their answers. Safe for
// concurrent use.
type itemHistory struct {
	history // the clock

	done []porcupine.Operation
}

func (h *itemHistory) note(client int, c itemCall, told itemAnswer, began int64) {
	ended := h.tick()
	h.mu.Lock()
	defer h.mu.Unlock()
	if told.unknown {
		ended = math.MaxInt64
	}
	h.done = append(h.done, porcupine.Operation{
		ClientId: client, Input: c, Output: told, Call: began, Return: ended,
	})
}

func (h *itemHistory) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := happened(h.done)
	if got := porcupine.CheckOperationsTimeout(itemModel, calls, time.Minute); got != porcupine.Ok {
		t.Errorf("%s: %+v", got, calls)
	}
}

// happened leaves out the calls without an answer that certainly never happened, so that the search
// does not explode. If no read saw a value, not even in the end, the value was never stored: a
// client can only replace a value that it has seen.
func happened(all []porcupine.Operation) []porcupine.Operation {
	seen := map[int]bool{0: true}
	for _, one := range all {
		for _, n := range one.Output.(itemAnswer).shown {
			seen[n] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one porcupine.Operation) bool {
		return one.Output.(itemAnswer).unknown &&
			slices.ContainsFunc(one.Input.(itemCall).next, func(n int) bool { return !seen[n] })
	})
}

// TestItemsLinearizableRefuses shows that the check can fail: each history has one flaw.
func TestItemsLinearizableRefuses(t *testing.T) {
	write := func(began, ended int64, want, next int, done bool) porcupine.Operation {
		return porcupine.Operation{
			Input: itemCall{keys: []int{0}, want: []int{want}, next: []int{next}},
			Call:  began, Return: ended, Output: itemAnswer{done: done},
		}
	}
	read := func(began, ended int64, n int) porcupine.Operation {
		return porcupine.Operation{
			Input: itemCall{keys: []int{0}, read: true}, Call: began, Return: ended,
			Output: itemAnswer{done: true, shown: map[int]int{0: n}},
		}
	}
	lost := write(1, math.MaxInt64, 0, 1, false)
	lost.Output = itemAnswer{unknown: true}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		fine    bool
	}{
		"in turn":              {[]porcupine.Operation{write(1, 2, 0, 1, true), read(3, 4, 1)}, true},
		"two winners":          {[]porcupine.Operation{write(1, 4, 0, 1, true), write(2, 3, 0, 2, true)}, false},
		"a stale read":         {[]porcupine.Operation{write(1, 2, 0, 1, true), read(3, 4, 0)}, false},
		"refused without need": {[]porcupine.Operation{write(1, 2, 0, 1, false)}, false},
		"lost and done":        {[]porcupine.Operation{lost, read(2, 3, 0), read(4, 5, 1)}, true},
		"lost for good":        {[]porcupine.Operation{lost, read(2, 3, 0), write(4, 5, 0, 2, true)}, true},
		"lost and undone":      {[]porcupine.Operation{lost, read(2, 3, 1), read(4, 5, 0)}, false},
	} {
		history := slices.Clone(c.history)
		if got := porcupine.CheckOperations(itemModel, happened(history)); got != c.fine {
			t.Errorf("%s: %v, want %v", name, got, c.fine)
		}
	}
}
